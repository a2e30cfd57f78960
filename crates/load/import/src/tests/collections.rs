//! Postman, Bruno.

use super::{hurl, omissions};
use crate::{ImportFile, ImportSettings, import, to_hurl};

const POSTMAN: &str = r#"{
  "info": {"name": "shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
  "variable": [{"key": "base url", "value": "{{scheme}}://shop"}],
  "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{token}}"}]},
  "item": [
    {"name": "account", "item": [
      {"name": "login",
       "event": [{"listen": "test", "script": {"exec": [
         "pm.test('ok', function () {",
         "  pm.response.to.have.status(200);",
         "});",
         "pm.environment.set('token', pm.response.json().token);"]}}],
       "request": {"method": "POST", "auth": {"type": "noauth"},
         "url": {"raw": "{{base url}}/login"},
         "header": [{"key": "X-Off", "value": "1", "disabled": true}, {"key": "X-Id", "value": "{{$guid}}"}],
         "body": {"mode": "raw", "raw": "{\"user\": \"{{user}}\"}", "options": {"raw": {"language": "json"}}}}}]},
    {"name": "item",
     "event": [{"listen": "prerequest", "script": {"exec": ["pm.sendRequest('http://h', () => {});"]}}],
     "request": {"method": "GET", "url": {"raw": "{{base url}}/items/:id?x=1",
       "variable": [{"key": "id", "value": "7"}]}}}
  ]
}"#;

#[test]
fn a_collection_has_its_folders_variables_authentication_and_checks() {
    let environment = r#"{"name": "dev", "values": [
        {"key": "scheme", "value": "http", "enabled": true}, {"key": "user", "value": "ada", "enabled": true},
        {"key": "token", "value": "old", "enabled": false}]}"#;
    let files = [("shop.json", POSTMAN), ("dev.json", environment)];
    let files = files.map(|(name, text)| ImportFile { name, text: text.into(), kind: None });
    let made = import(files, &ImportSettings::default()).unwrap();
    let expected = "# @name login\nPOST {{scheme}}://shop/login\nX-Id: {{newUuid}}\n[Options]\nlocation: true\n{\"user\": \"{{user}}\"}\nHTTP 200\n\
        [Captures]\ntoken: jsonpath \"$.token\"\n\n\
        # left out: a script before the request, 1 line: pm.sendRequest('http://h', () => {});\n# @name item\n\
        GET {{scheme}}://shop/items/7?x=1\nAuthorization: Bearer {{token}}\n[Options]\nlocation: true\n";
    let expected = expected.replace(
        "# left out: a script before the request, 1 line: pm.sendRequest('http://h', () => {});\n# @name item\n",
        "# @name item\n# left out: a script before the request, 1 line: pm.sendRequest('http://h', () => {});\n",
    );
    assert_eq!(to_hurl(&made.scenarios[0]), expected);
    let names: Vec<&str> = made.variables.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["scheme", "user"], "the token is captured, and not needed before");
    assert_eq!(made.omissions[0].line, 18);
}

#[test]
fn only_a_folder_is_taken() {
    let settings = ImportSettings { only: vec!["account".into()], ..ImportSettings::default() };
    let made = import([ImportFile { name: "a", text: POSTMAN.into(), kind: None }], &settings).unwrap();
    assert_eq!(made.scenarios[0].steps.len(), 1);
    assert_eq!(omissions(&made), Vec::<String>::new(), "what belongs to other steps is not an omission");
}

#[test]
fn bruno_has_checks_and_variables_after_a_response() {
    let text = "meta {\n  name: login\n}\n\npost {\n  url: {{host}}/login/:id\n  body: json\n  auth: basic\n}\n\n\
        params:path {\n  id: 5\n}\n\nauth:basic {\n  username: ada\n  password: {{pw}}\n}\n\nbody:json {\n  {\n    \"a\": 1\n  }\n}\n\n\
        vars:post-response {\n  token: res.body.token\n}\n\nassert {\n  res.status: eq 201\n  res.body.name: eq 'tea'\n  ~res.body.x: eq 1\n}\n";
    let expected = "# @name login\nPOST {{host}}/login/5\n[BasicAuth]\nada: {{pw}}\n[Options]\nlocation: true\n{\n  \"a\": 1\n}\nHTTP 201\n[Captures]\n\
        token: jsonpath \"$.token\"\n[Asserts]\njsonpath \"$.name\" == \"tea\"\n";
    assert_eq!(hurl(text), expected);
}
