//! Wrong arguments, flags and variables, told and ended as with cfdot. Nobody is asked.

use crate::lab::{Finished, Lab};

/// Variables that commands listen to.
const VARIABLES: [&str; 7] = [
    "BBS_URL",
    "LOCKET_API_LOCATION",
    "CA_CERT_FILE",
    "CLIENT_CERT_FILE",
    "CLIENT_KEY_FILE",
    "SKIP_CERT_VERIFY",
    "CFDOT_TIMEOUT",
];

/// Exit code, variables, words and what is told. `HTTP` and `HTTPS` stand for a BBS that is not
/// there, `EMPTY` for a file without anything, '' for an empty word.
const CASES: &str = r#"
3   |                               | domains                                        | Error: BBS URL not set.
3   | BBS_URL=                      | domains                                        | Error: BBS URL not set.
3   | BBS_URL=ftp://x               | domains                                        | Error: The URL 'ftp://x' does not have an 'https' scheme
3   | BBS_URL=http://a:b            | domains                                        | Error: The value 'http://a:b' is not a valid BBS URL
3   | HTTPS                         | domains                                        | Error: --caCertFile must be specified
3   | HTTPS                         | domains --skipCertVerify                       | Error: --clientCertFile and --clientKeyFile must both
3   | HTTPS                         | domains --skipCertVerify=false                 | Error: --caCertFile must be specified
3   | HTTPS                         | domains --skipCertVerify=x                     | invalid value 'x'
3   | HTTPS                         | domains --caCertFile no.pem --tls-cert c --tls-key k | CA cert file 'no.pem' doesn't exist
3   | HTTPS                         | domains --tls-ca EMPTY --tls-cert no.pem --tls-key EMPTY | cert file 'no.pem' doesn't exist
3   | HTTPS                         | domains --tls-ca EMPTY --tls-cert EMPTY --tls-key no.pem | key file 'no.pem' doesn't exist
5   | HTTPS                         | domains --tls-ca EMPTY --tls-cert EMPTY --tls-key EMPTY | it holds no PEM certificate
5   | HTTP                          | domains --timeout -1                           | connect to 127.0.0.1:9
3   | HTTP                          | domains --timeout x                            | invalid value 'x'
255 | HTTP CFDOT_TIMEOUT=x          | domains                                        | CFDOT_TIMEOUT is not a number
255 | HTTP CFDOT_TIMEOUT=32768      | domains                                        | CFDOT_TIMEOUT is not a number
3   | CFDOT_TIMEOUT=x               | domains                                        | Error: BBS URL not set.
5   | HTTP CFDOT_TIMEOUT=x          | domains --timeout 9                            | connect to 127.0.0.1:9
3   | HTTP                          | domains --bbsURL ftp://a --bbsURL ftp://b      | Error: The URL 'ftp://b'
5   |                               | --bbsURL http://127.0.0.1:9 --timeout 9 domains | connect to 127.0.0.1:9
3   |                               | --bbsURL http://127.0.0.1:9 cell               | Error: Missing arguments
3   | HTTP                          | help nonsense                                  | unrecognized subcommand 'nonsense'
255 | HTTP                          | domains --nonsense                             | unexpected argument '--nonsense'
255 | HTTP                          | tasks -d                                       | a value is required for '--domain <DOMAIN>'
255 | HTTP                          | nonsense                                       | unrecognized subcommand 'nonsense'
255 | HTTP                          | --nonsense                                     | unexpected argument '--nonsense'
3   | HTTP                          | domains more                                   | Error: Too many arguments specified
5   | HTTP                          | domains                                        | connect to 127.0.0.1:9
3   | HTTP                          | cell                                           | Error: Missing arguments
3   | HTTP                          | cell a b                                       | Error: Too many arguments specified
3   | HTTP                          | set-domain ''                                  | Error: No domain given
3   | HTTP                          | set-domain ''                                  | Usage: headroom cells set-domain
3   | HTTP                          | set-domain d -t -5s                            | ttl is negative
3   | HTTP                          | set-domain d -t soon                           | invalid duration "soon"
3   | HTTP                          | set-domain d -t 2000000h                       | longer than 4294967295 seconds
3   | HTTP                          | desired-lrp ''                                 | Error: Process guid should be non empty string
3   | HTTP                          | delete-desired-lrp ''                          | Error: Process guid should be non empty string
3   | HTTP                          | desired-lrps -d a --domain b                   | Error: Only one of -d and --domain should be passed
4   | HTTP                          | lrp-events -x -x=false                         | are deprecated
3   | HTTP                          | actual-lrps -i x                               | invalid value 'x'
3   | HTTP                          | actual-lrps -i 2147483648                      | invalid value '2147483648'
3   | HTTP                          | actual-lrp-groups-for-guid p -i -1             | Index must be a non-negative integer
3   | HTTP                          | retire-actual-lrp p                            | Error: Missing arguments
255 | HTTP                          | retire-actual-lrp p -1                         | unexpected argument '-1'
3   | HTTP                          | retire-actual-lrp p -- -1                      | Index must be a non-negative integer
3   | HTTP                          | retire-actual-lrp '' 1                         | Error: Process guid should be non empty string
3   | HTTP                          | task ''                                        | Error: Missing arguments
3   | HTTP                          | create-task                                    | Error: missing spec argument
3   | HTTP                          | delete-task ''                                 | Error: Process guid should be non empty string
3   | HTTP                          | create-task @no.json                           | Error: read the spec from "no.json"
3   | HTTP                          | create-task @EMPTY                             | Error: Invalid JSON: EOF
3   | HTTP                          | create-task {"memory_mb":"64"}                 | Invalid JSON: memory_mb: expected a whole number
3   | HTTP                          | create-desired-lrp []                          | Invalid JSON: expected an object, found []
5   | HTTP                          | create-desired-lrp null                        | connect to 127.0.0.1:9
4   | HTTP                          | create-desired-lrp {"metric_tags":{"a":{}}}    | Message: Invalid field: metric_tags
4   | HTTP                          | update-desired-lrp p {"metric_tags":{"a":{}}}  | Message: Invalid field: metric_tags
5   | HTTP                          | update-desired-lrp p {"metric_tags":{"a":{"dynamic":"INDEX"}}} | connect to 127.0.0.1:9
3   | HTTP                          | update-desired-lrp p                           | Error: Missing arguments
3   | HTTP                          | update-desired-lrp p {"instances":1.5}         | Invalid JSON: instances: expected
3   | HTTP                          | lrp-events -x more                             | Error: Too many arguments specified
4   | HTTP                          | lrp-events                                     | Error: BBS error
4   | HTTP                          | cell-states                                    | Error: BBS error: Failed to get cell registrations from BBS: 
3   |                               | locks                                          | Error: Locket API Location not set.
3   | LOCKET_API_LOCATION=a:1       | locks                                          | Error: --caCertFile must be specified
3   | SKIP_CERT_VERIFY=maybe        | locks --locket a:1                             | not a valid value for SKIP_CERT_VERIFY
3   |                               | locks --locket http://here                     | Error: The value 'http://here' is not HOST:PORT
4   |                               | presences --locket http://127.0.0.1:9          | Error: rpc error: code = Unavailable
3   |                               | claim-lock -o o -t 1                           | Error: key cannot be empty
3   |                               | claim-lock -k a --key b -o o -t 1              | Error: Only one of -k and --key should be passed
3   |                               | claim-lock -k k -t 1                           | Error: owner cannot be empty
3   |                               | claim-presence -k k -o o                       | Error: ttl should be an integer greater than zero
3   |                               | claim-presence -k k -o o -t -3                 | Error: ttl should be an integer greater than zero
3   |                               | claim-lock -k k -o o -t 1s                     | invalid value '1s'
3   |                               | release-lock -k k                              | Error: owner cannot be empty
"#;

#[test]
fn wrong_words_flags_and_variables_are_told() {
    let lab = Lab::new();
    let empty = lab.write("empty", "").display().to_string();
    for case in CASES.trim().lines() {
        let parts: Vec<&str> = case.split('|').map(str::trim).collect();
        let [code, variables, words, told] = parts[..] else {
            panic!("{case}");
        };
        let mut command = lab.command();
        command.arg("cells");
        for name in VARIABLES {
            command.env_remove(name);
        }
        for variable in variables.split_whitespace() {
            match variable.split_once('=') {
                Some((name, value)) => command.env(name, value),
                None => command.env(
                    "BBS_URL",
                    format!("{}://127.0.0.1:9", variable.to_lowercase()),
                ),
            };
        }
        for word in words.split_whitespace() {
            command.arg(word.replace("''", "").replace("EMPTY", &empty));
        }
        let done = Finished::of(command.output().expect("headroom starts"));
        assert_eq!(done.code.to_string(), code, "{case}\n{}", done.stderr);
        assert_eq!(done.stdout, "", "{case}");
        assert!(done.stderr.contains(told), "{case}\n{}", done.stderr);
    }
}
