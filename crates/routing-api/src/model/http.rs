//! HTTP routes: a uri leads to a backend.

use serde::{Deserialize, Serialize};

use super::{
    ApiError, ErrorName, MOST_TEXT, ModificationTag, can_be_kept, is_default, or_default, url,
};

/// One backend of a uri. Fields stand in the order of the JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRoute {
    /// Host and path.
    #[serde(default, deserialize_with = "or_default")]
    pub route: String,
    /// Port of the backend.
    #[serde(default, deserialize_with = "or_default")]
    pub port: u16,
    /// Address of the backend.
    #[serde(default, deserialize_with = "or_default")]
    pub ip: String,
    /// Seconds until the row expires.
    #[serde(default)]
    pub ttl: Option<i64>,
    /// Guid of the application.
    #[serde(default, deserialize_with = "or_default")]
    pub log_guid: String,
    /// Where requests go first; empty: straight to the backend.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "is_default"
    )]
    pub route_service_url: String,
    /// Which state of the row this is. What a request says here is ignored.
    #[serde(default, deserialize_with = "or_default")]
    pub modification_tag: ModificationTag,
}

/// What makes two routes the same row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpKey {
    /// Host and path.
    pub route: String,
    /// Address of the backend.
    pub ip: String,
    /// Port of the backend.
    pub port: u16,
    /// Where requests go first.
    pub route_service_url: String,
}

impl HttpRoute {
    /// Which row it is.
    pub fn key(&self) -> HttpKey {
        HttpKey {
            route: self.route.clone(),
            ip: self.ip.clone(),
            port: self.port,
            route_service_url: self.route_service_url.clone(),
        }
    }

    /// Checks a route that is to be written. Without a time to live it gets the longest.
    ///
    /// # Errors
    /// `RouteInvalidError` or `RouteServiceUrlInvalidError` with the text of the first rule
    /// that it breaks.
    pub fn check_upsert(&mut self, max_ttl: i64) -> Result<(), ApiError> {
        let ttl = *self.ttl.get_or_insert(max_ttl);
        self.check_delete()?;
        if ttl > max_ttl {
            return Err(invalid(format!("Max ttl is {max_ttl}")));
        }
        if ttl <= 0 {
            return Err(invalid("Request requires a ttl greater than 0"));
        }
        Ok(())
    }

    /// Checks a route that is to be deleted.
    ///
    /// # Errors
    /// As for one that is to be written, but for the time to live.
    pub fn check_delete(&self) -> Result<(), ApiError> {
        url::check(&self.route).map_err(invalid)?;
        self.check_route_service()?;
        if self.port == 0 {
            return Err(invalid("Each route request requires a port greater than 0"));
        }
        if self.route.is_empty() {
            return Err(invalid("Each route request requires a valid route"));
        }
        if self.ip.is_empty() {
            return Err(invalid("Each route request requires an IP"));
        }
        let texts = [
            &self.route,
            &self.ip,
            &self.log_guid,
            &self.route_service_url,
        ];
        if !texts.into_iter().all(|text| can_be_kept(text)) {
            return Err(invalid(format!(
                "Each route request requires texts of at most {MOST_TEXT} bytes without control characters"
            )));
        }
        Ok(())
    }

    fn check_route_service(&self) -> Result<(), ApiError> {
        let refuse = |cause| ApiError::new(ErrorName::RouteServiceUrlInvalidError, cause);
        if self.route_service_url.is_empty() {
            return Ok(());
        }
        if !self.route_service_url.starts_with("https://") {
            return Err(refuse("Route service url must use HTTPS.".to_owned()));
        }
        url::check(&self.route_service_url).map_err(refuse)
    }

    /// What becomes of this row when `wanted` is written over it: only some fields follow.
    #[must_use]
    pub fn renewed(&self, wanted: &Self) -> Self {
        let mut row = self.clone();
        row.modification_tag.index = row.modification_tag.index.wrapping_add(1);
        row.ttl = wanted.ttl.or(row.ttl);
        if !wanted.log_guid.is_empty() {
            row.log_guid.clone_from(&wanted.log_guid);
        }
        row
    }
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorName::RouteInvalidError, message)
}
