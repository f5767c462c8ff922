//! Tokens of the API, which Rudder calls accounts. Only the administrator's own token, which
//! stands in the server's folder, makes and revokes them.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::answers::ApiError;
use super::route::{Answer, Call, Route, routes};
use super::schema::{Schema, TEXT, object};
use super::shapes::when;
use crate::server::ledger::Request;
use crate::server::now;
use crate::server::service::Service;
use crate::server::state::{Access, TokenHash, TokenRecord};
use crate::server::store::ACCESSES;
use crate::trust::{random_id, random_token};

static KINDS: Schema = Schema::Word(&["ro", "rw"]);
static ACCOUNT: Schema = object! { "Account"
    needed "id": Schema::Identity;
    needed "name": Schema::Name, "what it is for";
    needed "authorizationType": KINDS, "ro reads, rw changes too";
    needed "creationDate": TEXT;
    needed "status": Schema::Word(&["enabled"]);
    may "token": TEXT, "only in the answer that makes it: the server keeps its hash";
};
static ACCOUNTS: Schema = Schema::List(&ACCOUNT, usize::MAX);
static NEW: Schema = object! { "NewAccount"
    needed "name": Schema::Name, "what it is for";
    may "id": Schema::Identity, "one is made if it is left out";
    may "authorizationType": KINDS, "ro if it is left out";
};

/// The calls of tokens.
pub(super) const ROUTES: &[Route] = routes! {
    get "apiaccounts" "getAllAccounts" "Tokens of the API, without the tokens themselves"
        => "accounts": ACCOUNTS, Now(|service, _| Ok(service.accounts())), by(Access::Admin);
    get "apiaccounts/{id}" "getAccount" "A token of the API, without the token itself"
        => "accounts": ACCOUNTS, Now(|service, call| service.account(call.id())), by(Access::Admin);
    put "apiaccounts" "createAccount" "Make a token"
        => "accounts": ACCOUNTS, Later(|service, call| Box::pin(service.new_account(call))),
        by(Access::Admin), takes(&NEW);
    delete "apiaccounts/{id}" "deleteAccount" "Revoke a token"
        => "accounts": ACCOUNTS, Later(|service, call| Box::pin(service.revoke(call.id()))),
        by(Access::Admin);
};

/// What the log calls the one whose token stands in the server's folder.
const ADMINISTRATOR: &str = "administrator";

/// What a token is recognised by.
pub(in super::super) fn hash(token: &[u8]) -> TokenHash {
    let mut hash = TokenHash::default();
    hash.copy_from_slice(digest(&SHA256, token).as_ref());
    hash
}

fn shown(token: &TokenRecord) -> Value {
    let word = ACCESSES.iter().find(|(access, _)| *access == token.access);
    json!({
        "id": &*token.id,
        "name": token.name,
        "authorizationType": word.map_or("ro", |(_, word)| word),
        "creationDate": when(token.created),
        "status": "enabled",
    })
}

impl Service {
    /// What somebody who shows this token may do, and the token's identity.
    pub(super) fn access_of(&self, token: &[u8]) -> Option<(Access, String)> {
        let shown = hash(token);
        let same = |known: &TokenHash| verify_slices_are_equal(&shown, known).is_ok();
        if same(&self.token) {
            return Some((Access::Admin, ADMINISTRATOR.to_owned()));
        }
        let state = self.view.read();
        let found = state.tokens.values().find(|token| same(&token.hash));
        found.map(|token| (token.access, token.id.to_string()))
    }

    fn accounts(&self) -> Value {
        let state = self.view.read();
        let all = state.tokens.values().map(|token| shown(token));
        json!({"accounts": all.collect::<Vec<_>>()})
    }

    fn account(&self, id: &str) -> Answer {
        let state = self.view.read();
        match state.tokens.get(id) {
            Some(token) => Ok(json!({"accounts": [shown(token)]})),
            None => Err(ApiError::not_found("token", id)),
        }
    }

    async fn revoke(&self, id: &str) -> Answer {
        let was = self.account(id)?;
        self.commands.run(Request::Revoke(id.to_owned())).await?;
        Ok(was)
    }

    async fn new_account(&self, call: &Call<'_>) -> Answer {
        let text = |field: &str| call.json[field].as_str().map(str::to_owned);
        let token = random_token().map_err(ApiError::unavailable)?;
        let word = text("authorizationType").unwrap_or_default();
        let access = ACCESSES.iter().find(|(_, known)| *known == word);
        let id = match text("id") {
            Some(id) => id,
            None => random_id().map_err(ApiError::unavailable)?,
        };
        let record = Arc::new(TokenRecord {
            id: id.into(),
            name: text("name").unwrap_or_default(),
            access: access.map_or(Access::Read, |(access, _)| *access),
            hash: hash(token.as_bytes()),
            created: now(),
        });
        let mut account = shown(&record);
        account["token"] = token.into();
        self.commands.run(Request::Token(record)).await?;
        Ok(json!({"accounts": [account]}))
    }
}
