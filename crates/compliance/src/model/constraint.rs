//! What a variable accepts as its value.

use std::net::IpAddr;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::query::value::{full_match, parse_memory};

/// What a variable accepts as its value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Constraint {
    /// Its kind of value.
    #[serde(rename = "type")]
    pub kind: ConstraintKind,
    /// The value where a directive gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Is the empty text a value?
    #[serde(alias = "allow_empty")]
    pub may_be_empty: bool,
    /// A regular expression that matches a value as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// Kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConstraintKind {
    /// Any text.
    #[default]
    String,
    /// Any text of several lines.
    #[serde(alias = "multiline-string")]
    TextArea,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// Permissions of a file: three or four octal digits.
    #[serde(alias = "permissions")]
    Perm,
    /// A mail address.
    Mail,
    /// An address of IPv4 or IPv6.
    #[serde(alias = "ipv4", alias = "ipv6")]
    Ip,
    /// A date and a time.
    DateTime,
    /// A size: `300 MB`.
    #[serde(
        alias = "size-b",
        alias = "size-kb",
        alias = "size-mb",
        alias = "size-gb",
        alias = "size-tb"
    )]
    Size,
    /// A password.
    Password,
    /// A file of the shared folder.
    #[serde(alias = "shared-file")]
    SharedFile,
    /// A kind that is not checked.
    #[serde(other)]
    Other,
}

impl Constraint {
    /// Checks that its regular expression can be used.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_itself(&self) -> Result<(), String> {
        self.pattern().map(|_| ())
    }

    fn pattern(&self) -> Result<Option<Regex>, String> {
        let pattern = self.regex.as_deref().filter(|text| !text.is_empty());
        pattern.map(full_match).transpose()
    }

    /// The check of a value, compiled once for many.
    ///
    /// # Errors
    /// What is wrong with the regular expression.
    pub fn compile(&self) -> Result<CompiledConstraint, String> {
        Ok(CompiledConstraint {
            kind: self.kind,
            may_be_empty: self.may_be_empty,
            pattern: self.pattern()?,
        })
    }
}

/// A constraint that is ready to check values.
#[derive(Debug, Clone)]
pub struct CompiledConstraint {
    kind: ConstraintKind,
    may_be_empty: bool,
    pattern: Option<Regex>,
}

impl CompiledConstraint {
    /// Does it accept any text that is not empty?
    pub fn accepts_any_text(&self) -> bool {
        let any = matches!(
            self.kind,
            ConstraintKind::String
                | ConstraintKind::TextArea
                | ConstraintKind::Password
                | ConstraintKind::SharedFile
                | ConstraintKind::Other
        );
        any && self.pattern.is_none()
    }

    /// Checks a value.
    ///
    /// # Errors
    /// What was expected; the value itself is not repeated, it may be a secret.
    pub fn check(&self, value: &str) -> Result<(), String> {
        if value.is_empty() {
            return if self.may_be_empty {
                Ok(())
            } else {
                Err("it is empty; expected a value".into())
            };
        }
        let expected = match self.kind {
            ConstraintKind::Integer if value.parse::<i64>().is_err() => "a whole number",
            ConstraintKind::Boolean if !["true", "false"].contains(&value) => "true or false",
            ConstraintKind::Perm if !is_permission(value) => "three or four octal digits",
            ConstraintKind::Mail if !is_mail(value) => "a mail address",
            ConstraintKind::Ip if value.parse::<IpAddr>().is_err() => "an IP address",
            ConstraintKind::DateTime if !is_date_and_time(value) => {
                "a date and time such as 2026-05-01T12:00:00"
            }
            ConstraintKind::Size if parse_memory(value).is_none() => "a size such as 300 MB",
            _ => "",
        };
        if !expected.is_empty() {
            return Err(format!("expected {expected}"));
        }
        match &self.pattern {
            Some(pattern) if !pattern.is_match(value) => {
                Err(format!("expected a text that matches {pattern}"))
            }
            _ => Ok(()),
        }
    }
}

fn is_permission(value: &str) -> bool {
    (3..=4).contains(&value.len()) && value.bytes().all(|digit| (b'0'..=b'7').contains(&digit))
}

/// With a zone or without.
fn is_date_and_time(value: &str) -> bool {
    value.parse::<jiff::Timestamp>().is_ok() || value.parse::<jiff::civil::DateTime>().is_ok()
}

fn is_mail(value: &str) -> bool {
    value.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && domain.contains('.')
            && !domain.starts_with('.')
            && !domain.ends_with('.')
            && !value.chars().any(char::is_whitespace)
            && !domain.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(kind: &str, value: &str) -> Result<(), String> {
        let json = serde_json::json!({"type": kind});
        let constraint: Constraint = serde_json::from_value(json).unwrap();
        constraint.compile().unwrap().check(value)
    }

    #[test]
    fn each_kind_accepts_its_values_and_no_others() {
        let cases = [
            ("string", "anything", ""),
            ("integer", "-12", "1.5"),
            ("boolean", "false", "no"),
            ("perm", "0644", "0888"),
            ("perm", "755", "75"),
            ("mail", "a@example.org", "a@example"),
            ("ip", "2001:db8::1", "1.2.3"),
            ("datetime", "2026-05-01T12:00:00", "May"),
            ("datetime", "2026-05-01T12:00:00Z", "2026-05-01T12:00:00X"),
            ("datetime", "2026-05-01T12:00:00.5+02:00", "2026-05-32"),
            ("size-mb", "300 MB", "MB"),
            ("permissions", "0644", "rw"),
            ("ipv6", "2001:db8::1", "1.2.3"),
            ("some-plugin", "anything", ""),
        ];
        for (kind, good, bad) in cases {
            assert_eq!(verdict(kind, good), Ok(()), "{kind} {good}");
            assert!(verdict(kind, bad).is_err(), "{kind} {bad}");
        }
    }

    #[test]
    fn a_regular_expression_matches_the_whole_value() {
        let constraint = Constraint {
            regex: Some("[a-z]+|[0-9]+".into()),
            may_be_empty: true,
            ..Constraint::default()
        };
        let check = constraint.compile().unwrap();
        assert_eq!(check.check("abc"), Ok(()));
        assert_eq!(check.check(""), Ok(()));
        assert!(check.check("abc1").is_err());
        assert!(check.check("1a").is_err());
        let broken = Constraint {
            regex: Some("(".into()),
            ..Constraint::default()
        };
        assert!(broken.check_itself().is_err());
    }
}
