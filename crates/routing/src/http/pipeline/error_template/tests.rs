use proptest::prelude::*;

use super::*;

const DATA: Data<'static> = Data {
    status: 503,
    status_text: "Service Unavailable",
    message: b"<no> endpoints",
    router_error: b"no_endpoints",
};

fn page_of(text: &str, data: Data<'_>) -> String {
    let template = ErrorTemplate::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut out = Vec::new();
    Run::new(data).write(&template.0, &mut out);
    String::from_utf8(out).unwrap()
}

fn page(text: &str) -> String {
    page_of(text, DATA)
}

#[test]
fn values_are_written_and_escaped() {
    for (text, expected) in [
        ("{{ .Status }} {{.StatusText}}", "503 Service Unavailable"),
        ("{{ $.Message }}", "&lt;no&gt; endpoints"),
        (
            "{{ .Header.Get \"x-cf-routererror\" }}|{{ .Header.Get `X` }}|",
            "no_endpoints||",
        ),
        ("{{ index .Header \"X-Cf-RouterError\" 0 }}", "no_endpoints"),
        ("{{ index .Header \"X-Cf-RouterError\" }}", "[no_endpoints]"),
        ("{{ \"a\\\"}}b\" }}", "a&#34;}}b"),
        ("{{ len .StatusText }} {{ -7 }} {{ true }}", "19 -7 true"),
        ("a {{- /* }} is text here */ -}} b", "ab"),
        ("a\n{{- .Status -}}\n b {{ .Status }} c", "a503b 503 c"),
    ] {
        assert_eq!(page(text), expected, "{text}");
    }
}

#[test]
fn conditions_choose() {
    let by_status =
        "{{ if eq .Status 404 }}gone{{ else if ge .Status 500 }}down{{ else }}odd{{ end }}";
    let with_status = |status| page_of(by_status, Data { status, ..DATA });
    assert_eq!([404, 503, 421].map(with_status), ["gone", "down", "odd"]);
    for (condition, expected) in [
        (".Message", true),
        ("not .Message", false),
        ("eq .StatusText \"Service Unavailable\"", true),
        ("eq .Status 1 2 503", true),
        ("ne .Status 503", false),
        ("lt .Status 503", false),
        ("le .Status 503", true),
        ("gt .Status 502", true),
        ("eq .Status \"503\"", false),
        ("and .Message (eq .Status 404)", false),
        ("or (eq .Status 404) (and .Message (not false))", true),
        (".Header.Get \"X-Cf-RouterError\"", true),
        (".Header.Get \"Other\"", false),
        (
            "eq (.Header.Get \"X-Cf-RouterError\") \"no_endpoints\"",
            true,
        ),
        (".Header", true),
        ("0", false),
        ("$e := .Message", true),
    ] {
        let text = format!("{{{{ if {condition} }}}}yes{{{{ else }}}}no{{{{ end }}}}");
        assert_eq!(page(&text) == "yes", expected, "{condition}");
    }
}

#[test]
fn the_dot_becomes_what_is_looked_at() {
    for (text, expected) in [
        (
            "{{ with .Message }}{{ . }} of {{ $.Status }}{{ end }}",
            "&lt;no&gt; endpoints of 503",
        ),
        (
            "{{ with $m := .Header.Get \"X\" }}{{ $m }}{{ else }}none of {{ .Status }}{{ end }}",
            "none of 503",
        ),
        (
            "{{ with .Header }}{{ .Get \"X-Cf-RouterError\" }}{{ end }}",
            "no_endpoints",
        ),
        (
            "{{ range $name, $values := .Header }}{{ $name }}:{{ range $values }} {{ . }}{{ end }};{{ end }}",
            "X-Cf-Routererror: no_endpoints;",
        ),
        (
            "{{ range $i, $v := index .Header \"X-Cf-RouterError\" }}{{ $i }}={{ $v }}{{ end }}",
            "0=no_endpoints",
        ),
        (
            "{{ range index .Header \"Other\" }}x{{ else }}nothing{{ end }}",
            "nothing",
        ),
        (
            "{{ if $s := .Status }}{{ if true }}{{ $s }}{{ end }}{{ end }}",
            "503",
        ),
    ] {
        assert_eq!(page(text), expected, "{text}");
    }
    let silent = Data {
        router_error: b"",
        ..DATA
    };
    let fields = "{{ range .Header }}x{{ else }}no fields{{ end }}";
    assert_eq!(page_of(fields, silent), "no fields");
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    for (text, expected) in [
        ("a\n{{ range }}", "found {{ range }} in line 2"),
        ("{{ .Status", "in line 1 without }}"),
        (
            "\n\n{{ .Sttus }}",
            "found {{ .Sttus }} in line 3; expected .Status",
        ),
        (
            "{{ if .Status }}",
            "found {{ if .Status }} in line 1 without its {{ end }}",
        ),
        ("{{ if .Status }}{{ else }}", "without its {{ end }}"),
        ("{{ end }}", "found {{ end }} in line 1 without an if"),
        ("{{ else }}", "without an if, with or range"),
        (
            "{{ if .Status }}{{ else }}{{ else }}{{ end }}",
            "found {{ else }}",
        ),
        ("{{ $x }}", "found {{ $x }}"),
        ("{{ if $x := .Status }}{{ end }}{{ $x }}", "found {{ $x }}"),
        ("{{ $.Nothing }}", "found {{ $.Nothing }}"),
        ("{{ template \"x\" }}", "found {{ template"),
        ("{{ .Message | printf }}", "found {{ .Message | printf }}"),
        ("{{ eq .Status }}", "found {{ eq .Status }}"),
        ("{{ (eq 1 1 }}", "found {{ (eq 1 1 }}"),
        ("{{ .Header.Get }}", "found {{ .Header.Get }}"),
        ("{{}}", "found {{  }}"),
    ] {
        let error = ErrorTemplate::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let deep = "{{ if true }}".repeat(parse::MOST_DEPTH + 1);
    assert!(matches!(
        ErrorTemplate::parse(&deep),
        Err(ErrorTemplateError::Deep(1))
    ));
    let deep = format!("{{{{ {}1 }}}}", "(".repeat(10_000));
    assert!(ErrorTemplate::parse(&deep).is_err());
}

proptest! {
    #[test]
    fn text_without_actions_is_written_as_it_is(text in "[^{]*") {
        prop_assert_eq!(page(&text), text);
    }

    #[test]
    fn any_text_is_a_template_or_an_error(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("{{ if .Status }}".to_owned()), Just("{{ end }}".to_owned()),
                Just("{{- else -}}".to_owned()), Just("{{ range $a, $b := .Header }}".to_owned()),
                Just("{{ $b }}".to_owned()), "[ -~\n\u{e9}]{0,12}", "\\{\\{[ -~]{0,12}\\}\\}",
            ],
            0..12,
        )
    ) {
        if let Ok(template) = ErrorTemplate::parse(&parts.concat()) {
            let mut out = Vec::new();
            Run::new(DATA).write(&template.0, &mut out);
        }
    }
}
