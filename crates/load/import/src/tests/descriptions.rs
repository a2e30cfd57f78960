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
