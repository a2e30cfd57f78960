//! Names of steps.

use super::*;

#[test]
fn a_step_has_a_name() {
    let plan = plan(
        "# @name login\nPOST http://shop/login\nGET http://shop/items?a=b\nGET http://shop/items\nGET http://shop\n\
         GET http://shop/items/{{id}}\n[Options]\nvariable: id=1\n",
    );
    let names: Vec<&str> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["login", "GET /items", "GET /items (2)", "GET /", "GET /items/{{id}}"]);
}
