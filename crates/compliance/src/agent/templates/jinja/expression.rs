//! Expressions of a template.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Number, Value, json};

use super::super::beginning;
use super::DEPTH;

/// Bytes of a text that an expression makes.
const TEXT: usize = 1 << 20;

/// An expression, read.
#[derive(Debug)]
pub(super) enum Expression {
    Value(Value),
    List(Vec<Expression>),
    Name(String),
    /// What a value has under a key.
    Of(Box<[Expression; 2]>),
    /// `items`, `keys` or `values` of an object.
    Parts(Box<Expression>, String),
    Filter(Box<Expression>, String, Vec<Expression>),
    /// Whether a test holds, or does not.
    Is(Box<Expression>, String, bool),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Binary(&'static str, Box<[Expression; 2]>),
    /// Condition, value, otherwise.
    Choice(Box<[Expression; 3]>),
}

/// Names and their values, the innermost last.
pub(super) struct Scope<'d> {
    data: &'d Value,
    frames: Vec<BTreeMap<String, Value>>,
}

impl<'d> Scope<'d> {
    pub(super) fn new(data: &'d Value) -> Self {
        Self {
            data,
            frames: vec![BTreeMap::new()],
        }
    }

    pub(super) fn enter(&mut self, frame: BTreeMap<String, Value>) {
        self.frames.push(frame);
    }

    pub(super) fn leave(&mut self) -> BTreeMap<String, Value> {
        self.frames.pop().unwrap_or_default()
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        if let Some(frame) = self.frames.last_mut() {
            frame.insert(name.to_owned(), value);
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let mut frames = self.frames.iter().rev();
        let found = frames.find_map(|frame| frame.get(name));
        found.or_else(|| self.data.get(name))
    }
}

/// Does a value count as true? What is not defined does not.
pub(super) fn is_true(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(value)) => *value,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(all)) => !all.is_empty(),
        Some(Value::Object(all)) => !all.is_empty(),
    }
}

/// A value as Jinja2 writes it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => quoted(other),
    }
}

fn quoted(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.contains('\'') => format!("\"{text}\""),
        Value::String(text) => format!("'{text}'"),
        Value::Array(all) => format!("[{}]", joined(all.iter().map(quoted).collect())),
        Value::Object(all) => {
            let pairs = all.iter();
            let pairs = pairs.map(|(key, value)| format!("'{key}': {}", quoted(value)));
            format!("{{{}}}", joined(pairs.collect()))
        }
    }
}

type Worked = Result<Option<Value>, String>;

impl Expression {
    /// Its value; none if it is not defined.
    pub(super) fn value(&self, scope: &Scope<'_>) -> Worked {
        Ok(Some(match self {
            Self::Value(value) => value.clone(),
            Self::Name(name) => return Ok(scope.get(name).cloned()),
            Self::List(all) => {
                let values = all.iter().map(|one| one.defined(scope));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
            Self::Of(both) => {
                let [of, key] = &**both;
                let (of, key) = (of.defined(scope)?, key.defined(scope)?);
                return Ok(entry(&of, &key));
            }
            Self::Parts(of, which) => match of.defined(scope)? {
                Value::Object(all) => {
                    let pairs = all.into_iter().map(|(key, value)| match which.as_str() {
                        "keys" => key.into(),
                        "values" => value,
                        _ => json!([key, value]),
                    });
                    Value::Array(pairs.collect())
                }
                other => return Err(format!("{} has no {which}()", shown(&other))),
            },
            Self::Filter(of, name, args) => {
                let value = of.value(scope)?;
                let args = args.iter().map(|arg| arg.defined(scope));
                let args = args.collect::<Result<Vec<_>, _>>()?;
                return filtered(value, name, &args);
            }
            Self::Is(of, test, wanted) => {
                let value = of.value(scope)?;
                Value::Bool(tested(value.as_ref(), test)? == *wanted)
            }
            Self::Not(of) => Value::Bool(!is_true(of.value(scope)?.as_ref())),
            Self::Negative(of) => arithmetic("-", &json!(0), &of.defined(scope)?)?,
            Self::Choice(all) => {
                let [condition, value, otherwise] = &**all;
                return match is_true(condition.value(scope)?.as_ref()) {
                    true => value.value(scope),
                    false => otherwise.value(scope),
                };
            }
            Self::Binary(operator, both) => {
                let [one, other] = &**both;
                let first = one.value(scope)?;
                match (*operator, is_true(first.as_ref())) {
                    ("and", false) | ("or", true) => return Ok(first),
                    ("and" | "or", _) => return other.value(scope),
                    _ => {}
                }
                let second = other.value(scope)?;
                match *operator {
                    "==" => Value::Bool(equal(first.as_ref(), second.as_ref())),
                    "!=" => Value::Bool(!equal(first.as_ref(), second.as_ref())),
                    _ => {
                        let first = first.ok_or_else(|| one.undefined())?;
                        let second = second.ok_or_else(|| other.undefined())?;
                        binary(operator, &first, &second)?
                    }
                }
            }
        }))
    }

    fn defined(&self, scope: &Scope<'_>) -> Result<Value, String> {
        self.value(scope)?.ok_or_else(|| self.undefined())
    }

    fn undefined(&self) -> String {
        match self {
            Self::Name(name) => format!("{name} is not defined"),
            Self::Of(both) => match &both[1] {
                Self::Value(key) => format!("{} is not defined", shown(key)),
                _ => "an entry is not defined".into(),
            },
            _ => "a part of an expression is not defined".into(),
        }
    }
}

fn entry(of: &Value, key: &Value) -> Option<Value> {
    match (of, key) {
        (Value::Object(all), Value::String(key)) => all.get(key).cloned(),
        (Value::Array(all), Value::Number(place)) => {
            let place = place.as_i64()?;
            let place = match place < 0 {
                true => i64::try_from(all.len()).ok()? + place,
                false => place,
            };
            all.get(usize::try_from(place).ok()?).cloned()
        }
        (Value::Array(all), Value::String(place)) => all.get(place.parse::<usize>().ok()?).cloned(),
        _ => None,
    }
}

fn equal(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Number(one)), Some(Value::Number(other))) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    }
}

fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

fn binary(operator: &str, one: &Value, other: &Value) -> Result<Value, String> {
    let compared = |holds: fn(Ordering) -> bool| {
        let order = order(one, other).ok_or_else(|| cannot(operator, one, other))?;
        Ok(Value::Bool(holds(order)))
    };
    match operator {
        "<" => compared(Ordering::is_lt),
        "<=" => compared(Ordering::is_le),
        ">" => compared(Ordering::is_gt),
        ">=" => compared(Ordering::is_ge),
        "in" | "not in" => {
            let is = match (one, other) {
                (one, Value::Array(all)) => all.iter().any(|item| equal(Some(item), Some(one))),
                (Value::String(key), Value::Object(all)) => all.contains_key(key),
                (Value::String(part), Value::String(text)) => text.contains(part.as_str()),
                _ => return Err(cannot(operator, one, other)),
            };
            Ok(Value::Bool(is == (operator == "in")))
        }
        "~" => text(shown(one) + &shown(other)),
        "+" => match (one, other) {
            (Value::String(one), Value::String(other)) => text(format!("{one}{other}")),
            (Value::Array(one), Value::Array(other)) => {
                Ok(one.iter().chain(other).cloned().collect())
            }
            _ => arithmetic(operator, one, other),
        },
        _ => arithmetic(operator, one, other),
    }
}

fn text(text: String) -> Result<Value, String> {
    match text.len() > TEXT {
        true => Err(format!(
            "an expression makes a text of more than {TEXT} bytes"
        )),
        false => Ok(text.into()),
    }
}

fn cannot(operator: &str, one: &Value, other: &Value) -> String {
    format!(
        "{} {operator} {} cannot be worked out",
        beginning(&quoted(one)),
        beginning(&quoted(other))
    )
}

fn arithmetic(operator: &str, one: &Value, other: &Value) -> Result<Value, String> {
    let wrong = || cannot(operator, one, other);
    if let (Some(a), Some(b)) = (one.as_i64(), other.as_i64())
        && operator != "/"
    {
        if b == 0 && matches!(operator, "//" | "%") {
            return Err(format!("{a} is divided by 0"));
        }
        // As in Python, division goes down and a remainder has the divisor's sign.
        let floor = || {
            let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
            let less = rest != 0 && (rest < 0) != (b < 0);
            Some(quotient - i64::from(less))
        };
        let result = match operator {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "//" => floor(),
            "%" => floor().and_then(|down| a.checked_sub(down.checked_mul(b)?)),
            _ => None,
        };
        return result.map(Into::into).ok_or_else(wrong);
    }
    let (Some(a), Some(b)) = (one.as_f64(), other.as_f64()) else {
        return Err(wrong());
    };
    if b == 0.0 && matches!(operator, "/" | "//" | "%") {
        return Err(format!("{a} is divided by 0"));
    }
    let result = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "//" => (a / b).floor(),
        "%" => a - b * (a / b).floor(),
        _ => return Err(wrong()),
    };
    Number::from_f64(result)
        .map(Value::Number)
        .ok_or_else(wrong)
}

fn tested(value: Option<&Value>, test: &str) -> Result<bool, String> {
    Ok(match test {
        "defined" => value.is_some(),
        "undefined" => value.is_none(),
        "none" => value.is_some_and(Value::is_null),
        "string" => value.is_some_and(Value::is_string),
        "number" => value.is_some_and(Value::is_number),
        "mapping" => value.is_some_and(Value::is_object),
        "sequence" | "iterable" => {
            value.is_some_and(|value| value.is_array() || value.is_string() || value.is_object())
        }
        other => return Err(format!("the template has no test {other:?}")),
    })
}

fn filtered(value: Option<Value>, name: &str, args: &[Value]) -> Worked {
    if matches!(name, "default" | "d") {
        let also_false = is_true(args.get(1));
        let kept = value.filter(|value| !also_false || is_true(Some(value)));
        let default = args.first().cloned().unwrap_or_else(|| "".into());
        return Ok(Some(kept.unwrap_or(default)));
    }
    let Some(value) = value else {
        return Err(format!("what the filter {name} is given is not defined"));
    };
    let wrong = || format!("{name} cannot be applied to {}", beginning(&quoted(&value)));
    let arg = |place: usize| args.get(place).map(shown).unwrap_or_default();
    let list = || match &value {
        Value::Array(all) => Ok(all.clone()),
        Value::Object(all) => Ok(all.keys().map(|key| key.as_str().into()).collect()),
        Value::String(text) => Ok(text.chars().map(|one| one.to_string().into()).collect()),
        _ => Err(wrong()),
    };
    Ok(Some(match name {
        "upper" => shown(&value).to_uppercase().into(),
        "lower" => shown(&value).to_lowercase().into(),
        "trim" => shown(&value).trim().into(),
        "capitalize" => {
            let text = shown(&value);
            let mut letters = text.chars();
            let first = letters.next().map(|one| one.to_uppercase().to_string());
            (first.unwrap_or_default() + &letters.as_str().to_lowercase()).into()
        }
        "string" => shown(&value).into(),
        "tojson" => value.to_string().into(),
        "replace" => match arg(0).as_str() {
            "" => return Err("replace has nothing to replace".into()),
            old => return text(shown(&value).replace(old, &arg(1))).map(Some),
        },
        "int" => match &value {
            Value::Number(number) => number
                .as_i64()
                .or_else(|| number.as_f64().map(|number| number as i64))
                .unwrap_or_default()
                .into(),
            other => shown(other)
                .trim()
                .parse::<i64>()
                .unwrap_or_default()
                .into(),
        },
        "length" | "count" => list()?.len().into(),
        "join" => {
            let parts: Vec<_> = list()?.iter().map(shown).collect();
            return text(parts.join(&arg(0))).map(Some);
        }
        "first" => return Ok(list()?.into_iter().next()),
        "last" => return Ok(list()?.into_iter().next_back()),
        "list" => list()?.into(),
        "reverse" => match &value {
            Value::String(text) => text.chars().rev().collect::<String>().into(),
            _ => list()?.into_iter().rev().collect(),
        },
        "unique" => {
            let mut found: Vec<Value> = Vec::new();
            let mut seen = std::collections::HashSet::new();
            for one in list()? {
                if seen.insert(one.to_string()) {
                    found.push(one);
                }
            }
            found.into()
        }
        "sort" => {
            let mut all = list()?;
            if all.windows(2).any(|two| order(&two[0], &two[1]).is_none()) {
                return Err(wrong());
            }
            all.sort_by(|one, other| order(one, other).unwrap_or(Ordering::Equal));
            all.into()
        }
        other => return Err(format!("the template has no filter {other:?}")),
    }))
}

/// Reads an expression, one rank of operators after the other.
pub(super) struct Reader<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
}

/// Operators by their ranks, from the one that binds least. Longer ones come first.
const RANKS: [&[&str]; 6] = [
    &["or"],
    &["and"],
    &["==", "!=", "<=", ">=", "<", ">", "in", "not in"],
    &["~"],
    &["+", "-"],
    &["*", "//", "/", "%"],
];
/// The rank before which `not` stands.
const COMPARISON: usize = 2;

type Read = Result<Expression, String>;

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            rest: text.trim_start(),
            depth: 0,
        }
    }

    /// An expression of all of a text.
    pub(super) fn whole(text: &'t str) -> Read {
        let mut reader = Self::new(text);
        let expression = reader.expression()?;
        reader.end()?;
        Ok(expression)
    }

    pub(super) fn end(&self) -> Result<(), String> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(self.wrong()),
        }
    }

    fn wrong(&self) -> String {
        let (text, rest) = (beginning(self.text), beginning(self.rest));
        format!("the expression {text:?} of the template cannot be read at {rest:?}")
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.rest.strip_prefix(sign);
        if let Some(rest) = found {
            self.rest = rest.trim_start();
        }
        found.is_some()
    }

    /// Takes a word that is not the beginning of a longer one.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(word) else {
            return false;
        };
        let goes_on = rest.starts_with(|one: char| one.is_ascii_alphanumeric() || one == '_');
        if !goes_on {
            self.rest = rest.trim_start();
        }
        !goes_on
    }

    fn operator(&mut self, rank: usize) -> Option<&'static str> {
        RANKS[rank]
            .iter()
            .copied()
            .find(|operator| match *operator {
                "not in" => {
                    let before = self.rest;
                    let found = self.word("not") && self.word("in");
                    if !found {
                        self.rest = before;
                    }
                    found
                }
                word if word.starts_with(|one: char| one.is_ascii_alphabetic()) => self.word(word),
                // The end of a tag takes away space.
                sign => self.sign(sign),
            })
    }

    pub(super) fn expression(&mut self) -> Read {
        let value = self.without_choice()?;
        if !self.word("if") {
            return Ok(value);
        }
        let condition = self.without_choice()?;
        let otherwise = match self.word("else") {
            true => self.nested(Self::expression)?,
            false => Expression::Value("".into()),
        };
        Ok(Expression::Choice(Box::new([condition, value, otherwise])))
    }

    /// An expression that has no `if` of its own, as in `for`.
    pub(super) fn without_choice(&mut self) -> Read {
        self.nested(|reader| reader.rank(0))
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Read) -> Read {
        if self.depth > DEPTH {
            return Err(format!(
                "expressions of the template are more than {DEPTH} deep"
            ));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn rank(&mut self, rank: usize) -> Read {
        if rank == COMPARISON && self.word("not") {
            let of = self.nested(|reader| reader.rank(COMPARISON))?;
            return Ok(Expression::Not(Box::new(of)));
        }
        let next = |reader: &mut Self| match rank + 1 == RANKS.len() {
            true => reader.unary(),
            false => reader.rank(rank + 1),
        };
        let mut one = next(self)?;
        let mut count = 0;
        while let Some(operator) = self.operator(rank) {
            // As deep as there are operators.
            count += 1;
            if count > DEPTH * 4 {
                return Err(self.wrong());
            }
            let other = next(self)?;
            one = Expression::Binary(operator, Box::new([one, other]));
        }
        Ok(one)
    }

    fn unary(&mut self) -> Read {
        if self.sign("-") {
            let of = self.nested(Self::unary)?;
            return Ok(Expression::Negative(Box::new(of)));
        }
        let mut value = self.primary()?;
        for _ in 0..DEPTH * 4 {
            if self.sign(".") {
                let name = self.name()?;
                if matches!(&*name, "items" | "keys" | "values") && self.sign("(") {
                    if !self.sign(")") {
                        return Err(self.wrong());
                    }
                    value = Expression::Parts(Box::new(value), name);
                } else {
                    let key = Expression::Value(name.into());
                    value = Expression::Of(Box::new([value, key]));
                }
            } else if self.sign("[") {
                let key = self.nested(Self::expression)?;
                if !self.sign("]") {
                    return Err(self.wrong());
                }
                value = Expression::Of(Box::new([value, key]));
            } else if self.sign("|") {
                let name = self.name()?;
                let args = match self.sign("(") {
                    true => self.list(")")?,
                    false => Vec::new(),
                };
                value = Expression::Filter(Box::new(value), name, args);
            } else if self.word("is") {
                let wanted = !self.word("not");
                value = Expression::Is(Box::new(value), self.name()?, wanted);
            } else {
                return Ok(value);
            }
        }
        Err(self.wrong())
    }

    fn primary(&mut self) -> Read {
        if self.sign("(") {
            let inner = self.nested(Self::expression)?;
            return match self.sign(")") {
                true => Ok(inner),
                false => Err(self.wrong()),
            };
        }
        if self.sign("[") {
            return Ok(Expression::List(self.list("]")?));
        }
        match self.rest.chars().next() {
            Some(quote @ ('\'' | '"')) => self.text_in(quote),
            Some('0'..='9') => self.number(),
            _ => {
                let name = self.name()?;
                Ok(match name.as_str() {
                    "true" | "True" => Expression::Value(true.into()),
                    "false" | "False" => Expression::Value(false.into()),
                    "none" | "None" => Expression::Value(Value::Null),
                    _ => Expression::Name(name),
                })
            }
        }
    }

    /// Expressions with commas between them, until this sign.
    fn list(&mut self, end: &str) -> Result<Vec<Expression>, String> {
        let mut all = Vec::new();
        while !self.sign(end) {
            all.push(self.nested(Self::expression)?);
            if !self.sign(",") && !self.rest.starts_with(end) {
                return Err(self.wrong());
            }
        }
        Ok(all)
    }

    fn name(&mut self) -> Result<String, String> {
        let end = |one: char| !one.is_ascii_alphanumeric() && one != '_';
        let length = self.rest.find(end).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(length);
        if name.is_empty() {
            return Err(self.wrong());
        }
        self.rest = rest.trim_start();
        Ok(name.to_owned())
    }

    fn number(&mut self) -> Read {
        let end = |one: char| !one.is_ascii_digit() && one != '.';
        let length = self.rest.find(end).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(length);
        let whole = text.parse::<i64>().ok().map(Value::from);
        let number = whole.or_else(|| Some(Number::from_f64(text.parse().ok()?)?.into()));
        let number = number.ok_or_else(|| self.wrong())?;
        self.rest = rest.trim_start();
        Ok(Expression::Value(number))
    }

    fn text_in(&mut self, quote: char) -> Read {
        let mut text = String::new();
        let mut letters = self.rest.char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, other)) => text.push(other),
                    None => break,
                },
                _ if letter == quote => {
                    self.rest = self.rest[at + 1..].trim_start();
                    return Ok(Expression::Value(text.into()));
                }
                other => text.push(other),
            }
        }
        Err(self.wrong())
    }
}
