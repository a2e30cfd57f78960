//! OpenAPI and Swagger.

use super::{omissions, value};
use crate::{ImportFile, ImportSettings, count_omissions, import, to_hurl};

const PETS: &str = "
openapi: 3.0.1
info: {title: Pets}
servers:
  - url: https://{host}/v1
    variables: {host: {default: pets.example}}
security: [{token: []}]
paths:
  /pets:
    get:
      operationId: listPets
      tags: [pets]
      parameters:
        - {name: limit, in: query, schema: {type: integer, minimum: 5, maximum: 5}, required: true}
        - {name: after, in: query, schema: {type: string}}
      responses: {200: {description: ok}, default: {description: no}}
    post:
      operationId: addPet
      tags: [pets, write]
      requestBody:
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Pet'}
      responses: {201: {description: ok}}
  /pets/{id}:
    get:
      operationId: getPet
      parameters:
        - {name: id, in: path, required: true, example: 17}
      responses: {200: {description: ok}}
components:
  securitySchemes:
    token: {type: http, scheme: bearer}
  schemas:
    Pet:
      type: object
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, example: Rex}
        kind: {enum: [dog, cat]}
        owner: {$ref: '#/components/schemas/Pet'}
";

fn pets(settings: &ImportSettings) -> crate::Import {
    import([ImportFile { name: "pets.yaml", text: PETS.into(), kind: None }], settings).unwrap()
}

#[test]
fn reading_operations_are_steps_and_writing_ones_are_comments() {
    let import = pets(&ImportSettings::default());
    let shown = to_hurl(&import.scenarios[0]);
    let expected = "# optional parameters: after\n";
    assert!(shown.contains(expected), "{shown}");
    assert!(
        shown.contains("GET {{base_url}}/pets\nAuthorization: Bearer {{token}}\n[Query]\nlimit: 5\nHTTP 200\n"),
        "{shown}"
    );
    assert!(shown.contains("\n# POST {{base_url}}/pets\n"), "{shown}");
    assert!(!shown.contains("\nPOST "), "{shown}");
    assert_eq!(value(&import, "base_url"), Some("https://pets.example/v1"));
    assert_eq!(value(&import, "id"), Some("17"));
    assert_eq!(count_omissions(&import.omissions), "1 operation that changes data");
}

#[test]
fn all_operations_are_steps_if_asked_for_and_bodies_are_examples_of_their_schemas() {
    let import = pets(&ImportSettings { all: true, only: vec!["write".into()], ..ImportSettings::default() });
    let shown = to_hurl(&import.scenarios[0]);
    assert!(shown.contains("POST {{base_url}}/pets\n"), "{shown}");
    assert!(shown.contains("\"name\": \"Rex\""), "{shown}");
    assert!(shown.contains("\"kind\": \"dog\"") && !shown.contains("\"id\""), "{shown}");
    assert!(shown.contains("HTTP 201"), "{shown}");
    assert_eq!(omissions(&import), Vec::<String>::new());
}

#[test]
fn the_same_seed_makes_the_same_values() {
    let text = "swagger: '2.0'\nhost: h\nbasePath: /v2\nschemes: [http]\npaths:\n  /a:\n    post:\n      consumes: [application/x-www-form-urlencoded]\n\
        \x20     parameters:\n        - {name: n, in: formData, type: integer}\n        - {name: s, in: formData, type: string, format: uuid}\n";
    let made = |seed| {
        let settings = ImportSettings { all: true, seed, ..ImportSettings::default() };
        to_hurl(&import([ImportFile { name: "a", text: text.into(), kind: None }], &settings).unwrap().scenarios[0])
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
    assert!(made(1).starts_with("POST {{base_url}}/a\n[Form]\nn: "), "{}", made(1));
}

/// Omissions of an import of a description with this schema as the body of an operation.
fn omissions_of_body(schemas: &str, schema: &str) -> Vec<String> {
    let text = format!(
        "openapi: 3.0.1\npaths:\n  /a:\n    post:\n      requestBody: {{content: {{application/json: {{schema: {schema}}}}}}}\n      \
         responses: {{200: {{description: ok}}}}\ncomponents:\n  schemas:\n    None: {{}}\n{schemas}"
    );
    let settings = ImportSettings { all: true, ..ImportSettings::default() };
    omissions(&import([ImportFile { name: "a.yaml", text: text.into(), kind: None }], &settings).unwrap())
}

#[test]
fn what_a_made_up_value_does_not_have_of_its_schema_is_listed() {
    let wide: String = (0..600).map(|n| format!("p{n}: {{type: integer}}, ")).collect();
    let wide = format!("{{type: object, properties: {{{wide}}}}}");
    let circle = "    A: {type: object, required: [a], properties: {a: {$ref: '#/components/schemas/A'}}}\n";
    for (schemas, schema, expected) in [
        ("", wide.as_str(), "members beyond the first 500 of a made-up value"),
        (
            "",
            "{type: array, minItems: 90, items: {type: array, minItems: 90, items: {type: integer}}}",
            "values beyond the first 500",
        ),
        (circle, "{$ref: '#/components/schemas/A'}", "schemas more than 8 within one another, null instead"),
        ("", "{type: array, minItems: 101, items: {type: integer}}", "minItems"),
        ("", "{type: object, minProperties: 200}", "minProperties"),
        ("", "{type: object, properties: {s: {type: string, minLength: 5000}}}", "minLength of s"),
    ] {
        let found = omissions_of_body(schemas, schema);
        assert!(found.iter().any(|what| what.contains(expected)), "{expected}: {found:?}");
    }
    let optional = "    A: {type: object, properties: {a: {$ref: '#/components/schemas/A'}}}\n";
    assert_eq!(omissions_of_body(optional, "{$ref: '#/components/schemas/A'}"), Vec::<String>::new());
}

#[test]
fn bodies_that_are_short_since_the_file_has_too_many_are_listed() {
    let wide: String = (0..400).map(|n| format!("p{n}: {{type: integer}}, ")).collect();
    let operation = |n: usize| {
        format!(
            "  /a{n}:\n    post: {{requestBody: {{content: {{application/json: {{schema: {{$ref: '#/components/schemas/W'}}}}}}}}}}\n"
        )
    };
    let paths: String = (0..300).map(operation).collect();
    let text = format!(
        "openapi: 3.0.1\npaths:\n{paths}components:\n  schemas:\n    W: {{type: object, properties: {{{wide}}}}}\n"
    );
    let settings = ImportSettings { all: true, ..ImportSettings::default() };
    let import = import([ImportFile { name: "a.yaml", text: text.into(), kind: None }], &settings).unwrap();
    let cut = "members beyond the first 5 of a made-up value, since all of the file have 100000 already";
    let found: usize = omissions(&import).iter().filter(|what| what.contains(cut)).count();
    assert!(found > 0, "{:?}", omissions(&import));
}

#[test]
fn a_body_of_swagger_that_cannot_be_made_is_listed() {
    let text = "swagger: '2.0'\nhost: h\npaths:\n  /a:\n    post:\n      consumes: [application/xml]\n      parameters:\n        \
                - {name: b, in: body, schema: {type: object, properties: {a: {type: string}}}}\n";
    let settings = ImportSettings { all: true, ..ImportSettings::default() };
    let import = import([ImportFile { name: "a.yaml", text: text.into(), kind: None }], &settings).unwrap();
    let found = omissions(&import);
    assert!(found.iter().any(|what| what.contains("a body of application/xml without an example")), "{found:?}");
}
