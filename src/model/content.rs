//! What an item carries, as the caller gave it and as it is stored.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3Default;

/// What an item carries. Reading returns it as it was given: text, a JSON value, or bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    Json(Value),
    Bytes(Vec<u8>),
}

impl Content {
    /// Reads the two columns back. The error explains why they do not match.
    pub fn from_stored(kind: &str, stored: String) -> Result<Self, (String, String)> {
        match kind {
            "text" => Ok(Content::Text(stored)),
            "json" => match read_json(&stored) {
                Ok(value) => Ok(Content::Json(value)),
                Err(reason) => Err((format!("the content {reason}"), stored)),
            },
            "base64" => match STANDARD.decode(&stored) {
                Ok(bytes) => Ok(Content::Bytes(bytes)),
                Err(error) => Err((format!("the content is not valid base64: {error}"), stored)),
            },
            // The item is done, and its queue does not keep content.
            "dropped" => Ok(Content::Json(Value::Null)),
            other => Err((format!("the content_type '{other}' is not text, json or base64"), stored)),
        }
    }
}

/// Reads JSON. The error explains why it cannot be read exactly.
pub fn read_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = serde_json::from_str(text).map_err(|error| format!("is not valid JSON: {error}"))?;
    match integer_beyond_64_bits(text) {
        None => Ok(value),
        Some(number) => Err(format!(
            "has the integer {number}, which is beyond 64 bits and would not be kept exactly; write it as a string"
        )),
    }
}

/// Returns the first integer of a valid JSON text that the parser has rounded.
pub fn integer_beyond_64_bits(json: &str) -> Option<&str> {
    // Such an integer has at least 19 digits, so one of them is at a multiple of 19. Testing only those positions is
    // enough to rule most texts out.
    const DIGITS: usize = 19;
    let bytes = json.as_bytes();
    if !bytes.iter().skip(DIGITS - 1).step_by(DIGITS).any(u8::is_ascii_digit) {
        return None;
    }
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => at + 2 + bytes[at + 1..].iter().scan(false, in_string).count(),
            b'-' | b'0'..=b'9' => at + bytes[at..].iter().take_while(|byte| is_of_number(**byte)).count(),
            _ => at + 1,
        };
        let token = json.get(at..end).unwrap_or_default();
        let is_integer = token.len() >= DIGITS && token.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
        if is_integer && token.parse::<i64>().is_err() && token.parse::<u64>().is_err() {
            return Some(token);
        }
        at = end;
    }
    None
}

/// Continues to the closing quote; the state is whether the next byte is escaped.
fn in_string(escaped: &mut bool, byte: &u8) -> Option<()> {
    let is_end = *byte == b'"' && !*escaped;
    *escaped = *byte == b'\\' && !*escaped;
    (!is_end).then_some(())
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Content in the form of the table's two columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The `content_type` column.
    pub kind: &'static str,
    /// The `content` column.
    pub text: String,
    /// The size that counts against `max_bytes`: that of the text, or of the bytes given.
    pub size: usize,
}

impl Stored {
    pub fn text(text: String) -> Self {
        Self { kind: "text", size: text.len(), text }
    }

    /// Takes JSON text that is known to be valid.
    pub fn json(text: String) -> Self {
        Self { kind: "json", size: text.len(), text }
    }

    pub fn bytes(bytes: &[u8]) -> Self {
        Self { kind: "base64", size: bytes.len(), text: STANDARD.encode(bytes) }
    }
}

impl From<Content> for Stored {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Stored::text(text),
            Content::Json(value) => Stored::json(value.to_string()),
            Content::Bytes(bytes) => Stored::bytes(&bytes),
        }
    }
}

/// Returns the checksum of `content`, `content_type` and `headers`, which detects damage. Part of the file format.
pub fn checksum(content: &[u8], kind: &[u8], headers: Option<&[u8]>) -> i64 {
    let mut sum = Xxh3Default::new();
    // The lengths separate one column's end from the next one's beginning, and missing headers from empty ones.
    for column in [Some(kind), headers, Some(content)] {
        sum.update(&column.map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        sum.update(column.unwrap_or_default());
    }
    sum.digest() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn content_comes_back_as_it_was_given() {
        for content in [
            Content::Text("a\0b \u{10ffff}".into()),
            Content::Json(json!({"a": [1, -0.0, 1e-7, u64::MAX, i64::MIN, null, "x"]})),
            Content::Bytes(vec![0, 255, 10]),
        ] {
            let stored = Stored::from(content.clone());
            assert_eq!(Content::from_stored(stored.kind, stored.text).unwrap(), content);
        }
    }

    #[test]
    fn content_that_does_not_fit_its_type_keeps_its_raw_text() {
        for kind in ["json", "base64", "pickle"] {
            let (reason, raw) = Content::from_stored(kind, "{oops".into()).unwrap_err();
            assert_eq!(raw, "{oops");
            assert!(reason.to_lowercase().contains(kind), "{reason}");
        }
    }

    #[test]
    fn an_integer_that_the_parser_rounds_is_found_wherever_it_stands() {
        let beyond = "18446744073709551616";
        for before in 0..40 {
            let padding = " ".repeat(before);
            for json in [format!("{padding}{beyond}"), format!("[\"a\\\"1\",{padding}-{beyond}]")] {
                assert!(integer_beyond_64_bits(&json).is_some_and(|found| found.ends_with(beyond)), "{json}");
                assert!(read_json::<Value>(&json).unwrap_err().contains(beyond));
            }
            for exact in
                ["18446744073709551615", "-9223372036854775808", "1844674407370955161600.5", "18446744073709551616e3"]
            {
                let json = format!("{padding}{{\"{beyond}\": \"\\\\\\\" {beyond}\", \"n\": {exact}}}");
                assert_eq!(integer_beyond_64_bits(&json), None, "{json}");
                read_json::<Value>(&json).unwrap();
            }
        }
    }

    #[test]
    fn every_column_and_every_border_between_them_counts_in_the_checksum() {
        let sums = [
            checksum(b"content", b"text", None),
            checksum(b"content", b"text", Some(b"")),
            checksum(b"content", b"json", None),
            checksum(b"contenu", b"text", None),
            checksum(b"", b"text", Some(b"content")),
            checksum(b"tcontent", b"tex", None),
        ];
        for (index, sum) in sums.iter().enumerate() {
            assert!(!sums[..index].contains(sum), "{sums:?}");
        }
    }

    #[test]
    fn the_checksum_is_part_of_the_files_format_and_never_changes() {
        assert_eq!(checksum(b"content", b"text", Some(b"{}")), -3_758_759_446_269_268_417);
    }
}
