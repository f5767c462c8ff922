//! Tokens of the REST API.

use super::args::{NewTokenArgs, RevokeArgs, TokenCommand};
use super::*;

/// `headroom compliance token`.
pub(super) async fn run(command: &TokenCommand) -> Result<()> {
    match command {
        TokenCommand::New(args) => new(args).await,
        TokenCommand::List(args) => list(args).await,
        TokenCommand::Revoke(args) => revoke(args).await,
    }
}

async fn new(args: &NewTokenArgs) -> Result<()> {
    let kind = if args.write { "rw" } else { "ro" };
    let body = json!({"id": args.name, "name": args.name, "authorizationType": kind});
    let client = client(&args.admin)?;
    let made = client.call(Method::PUT, "apiaccounts", Some(&body)).await?;
    let token = made["accounts"][0]["token"].as_str();
    let token = token.context("the server's answer has no token")?;
    // Alone on its line, so that a script can take it.
    print(&format!("{token}\n"))
}

async fn list(args: &AdminArgs) -> Result<()> {
    let client = client(args)?;
    let all = client.call(Method::GET, "apiaccounts", None).await?;
    let mut out = String::new();
    for one in all["accounts"].as_array().into_iter().flatten() {
        let may = match one["authorizationType"].as_str() {
            Some("rw") => "writes",
            _ => "reads",
        };
        out += &format!(
            "{may:<6}  {}  {}\n",
            text(one, "creationDate"),
            text(one, "id")
        );
    }
    if out.is_empty() {
        out = "there is no token but the administrator's; headroom compliance token new makes \
               one\n"
            .into();
    }
    print(&out)
}

async fn revoke(args: &RevokeArgs) -> Result<()> {
    let client = client(&args.admin)?;
    let path = format!("apiaccounts/{}", escaped(&args.id));
    client.call(Method::DELETE, &path, None).await?;
    print(&format!("revoked  {}\n", args.id))
}

/// A text as a part of an address.
fn escaped(text: &str) -> String {
    let letters = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_can_be_part_of_an_address() {
        assert_eq!(escaped("ci-1.x_Y"), "ci-1.x_Y");
        assert_eq!(escaped("a b/ü?"), "a%20b%2F%C3%BC%3F");
    }
}
