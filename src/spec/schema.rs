//! The JSON Schema of the spec, made from the key tables.
//!
//! For editors (taplo and others read it) and for programs that write specs.
//! Draft 7, which is what editors know best. It says what single values look
//! like; what they say about each other only `load` knows.

use serde_json::{Map, Value, json};

use super::keys::{Key, NODES, Need, PORT, SPEC, Shape, Table};

/// The schema as it is in `schemas/spec.schema.json`.
#[must_use]
pub fn schema() -> Value {
    let Value::Object(body) = table(&SPEC) else { return Value::Null };
    let mut all = Map::new();
    all.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    all.insert("title".to_owned(), json!("selvedge cluster spec, version 1"));
    all.extend(body);
    Value::Object(all)
}

fn table(table: &'static Table) -> Value {
    let properties: Map<_, _> = table.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<_> =
        table.keys.iter().filter(|key| matches!(key.need, Need::Required)).map(|key| key.name).collect();
    let mut object = json!({
        "type": "object",
        "description": table.doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if std::ptr::eq(table, &PORT) {
        // One of the three ways to name an HCA, or the interface by which the hosts name it.
        let ways = json!([{"required": ["device"]}, {"required": ["pci"]}, {"required": ["guid"]}]);
        let by_hosts = json!({"required": ["interface"], "not": {"anyOf": ways}});
        object["oneOf"] = ways;
        object["oneOf"].as_array_mut().into_iter().for_each(|all| all.push(by_hosts.clone()));
    }
    object
}

fn property(key: &'static Key) -> Value {
    let mut value = shape(&key.shape);
    value["description"] = json!(key.doc);
    if let Need::Default(default) = key.need {
        // Defaults are written as the file writes them: numbers and arrays bare, words without quotes.
        value["default"] = serde_json::from_str(default).unwrap_or_else(|_| json!(default));
    }
    value
}

fn shape(of: &'static Shape) -> Value {
    match of {
        Shape::Words(words) => json!({"type": "string", "enum": words()}),
        Shape::Text(pattern, example) => json!({"type": "string", "pattern": pattern, "examples": [example]}),
        Shape::Texts(least, pattern, example) => {
            let item = json!({"type": "string", "pattern": pattern, "examples": [example]});
            if *least == 0 {
                json!({"type": "array", "items": item})
            } else {
                json!({"type": "array", "minItems": least, "items": item})
            }
        }
        Shape::Integer(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Shape::Integers(numbers) => json!({"type": "integer", "enum": numbers}),
        Shape::Any(shapes) => json!({"anyOf": shapes.iter().map(shape).collect::<Vec<_>>()}),
        Shape::Option => json!({"anyOf": [
            {"type": "integer"},
            {"type": "boolean"},
            {"type": "string", "pattern": "^[A-Za-z0-9._:,/+-]{1,1024}$"},
        ]}),
        Shape::One(inner) => table(inner),
        Shape::Named(pattern, inner) => named(pattern, table(inner)),
        Shape::Map(pattern, _, inner) => named(pattern, shape(inner)),
        Shape::Free(pattern, inner) => named(pattern, named(pattern, shape(inner))),
        Shape::Rows(inner) => {
            let least = usize::from(std::ptr::eq(*inner, &NODES));
            json!({"type": "array", "items": table(inner), "minItems": least})
        }
    }
}

fn named(pattern: &str, inner: Value) -> Value {
    json!({"type": "object", "propertyNames": {"pattern": pattern}, "additionalProperties": inner})
}
