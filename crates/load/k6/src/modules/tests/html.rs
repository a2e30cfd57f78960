//! k6/html.

use serde_json::{Value, json};

use crate::tests::{failure, run};

const PAGE: &str = r#"<html lang="en"><head><title>T</title></head><body>
<ul id="l"><li class="a x" data-user-id="7" data-on="true" data-o='{"k":1}'>1</li><li>2</li><li class="a">3</li></ul>
<form action="/go" method="post"><input name="q" value="x y"><input type="checkbox" name="c" checked><input type="radio" name="r" value="1">
<textarea name="t">text</textarea><select name="s"><option value="1">one</option><option selected>two</option></select>
<select name="m" multiple><option selected>a</option><option selected>b</option></select><input name="d" disabled>
<label for="i">L</label><input id="i" type="hidden" name="h" value="1&2"><button type="submit" name="b" value="v">Go</button></form>
<a href="http://u:p@h.test:81/p/q?x=1#f" rel="next nofollow">link</a><p>a<b>c</b>d</p><!--note--></body></html>"#;

fn of_page(expression: &str) -> Value {
    let page = json!(PAGE);
    run(&format!(
        "import {{ parseHTML }} from 'k6/html';\nconst doc = parseHTML({page});\nconst texts = (s) => s.map((_, one) => one.text());\n\
         export default () => {expression};"
    ))
}

#[test]
fn selections_find_and_walk() {
    let made = of_page(
        "[texts(doc.find('li')), doc.find('li.a').size(), doc.find('li').eq(1).text(), doc.find('li').last().text(),
          doc.find('li').first().attr('class'), doc.find('li').attr('none'), doc.find('li').eq(9).attr('x', 'other'),
          texts(doc.find('li').filter('.a')), texts(doc.find('li').not('.a')), texts(doc.find('li').filter((i, s) => i > 0 && s.is('.a'))),
          texts(doc.find('li.x').nextAll()), texts(doc.find('li.x').next()), texts(doc.find('li').last().prevAll()),
          texts(doc.find('li').last().prevUntil('.x')), texts(doc.find('li.x').siblings('.a')), doc.find('b').closest('p').text(),
          doc.find('b').parents().size(), doc.find('b').parentsUntil('body').size(), doc.find('b').parent('div').size(),
          texts(doc.find('ul').children('.a')), doc.find('p').contents().size(), doc.find('p').html(), doc.find('ul').has('.x').size(),
          texts(doc.find('li').slice(1, 3)), doc.find('li').toArray().length, doc.find('li').get(1).textContent(), doc.find('#none').html() === undefined]",
    );
    let expected = json!([
        ["1", "2", "3"],
        2,
        "2",
        "3",
        "a x",
        null,
        "other",
        ["1", "3"],
        ["2"],
        ["3"],
        ["2", "3"],
        ["2"],
        ["1", "2"],
        ["2"],
        ["3"],
        "acd",
        3,
        1,
        0,
        ["1", "3"],
        3,
        "a<b>c</b>d",
        1,
        ["2", "3"],
        3,
        "2",
        true
    ]);
    assert_eq!(made, expected);
}

#[test]
fn data_and_fields_of_forms_have_their_values() {
    let made = of_page(
        "[doc.find('li').data('userId'), doc.find('li').data(), doc.find('select[name=s]').val(), doc.find('select[name=m]').val(),
          doc.find('textarea').val(), doc.find('form').serialize(), doc.find('form').serializeObject(), doc.find('form').serializeArray().length]",
    );
    assert_eq!(made[0], 7);
    assert_eq!(made[1], json!({ "userId": 7, "on": true, "o": { "k": 1 } }));
    assert_eq!((&made[2], &made[3], &made[4]), (&json!("two"), &json!(["a", "b"]), &json!("text")));
    assert_eq!(made[5], "q=x+y&c=on&t=text&s=two&m=a&m=b&h=1%262");
    assert_eq!(made[6], json!({ "q": "x y", "c": "on", "t": "text", "s": "two", "m": "b", "h": "1&2" }));
    assert_eq!(made[7], 7);
}

#[test]
fn elements_have_the_names_of_the_dom() {
    let made = of_page(
        "(() => { const a = doc.find('a').get(0), li = doc.find('li').get(0), s = doc.find('select').get(0), p = doc.find('p').get(0);
          const seen = []; doc.find('li').each((i, one) => seen.push(`${i}${one.nodeName()}`));
          return [a.hostname(), a.port(), a.pathname(), a.search(), a.hash(), a.protocol(), a.username(), a.origin(), a.relList(), a.text(),
            li.className(), li.classList(), li.getAttribute('data-on'), li.hasAttribute('z'), li.attributes().class.value,
            li.nextElementSibling().textContent(), li.parentElement().id(), s.value(), s.selectedIndex(), s.options().length,
            s.form().method(), p.firstChild().nodeValue(), p.childNodes().length, p.firstElementChild().nodeName(),
            p.nextSibling().nodeType(), doc.find('input#i').get(0).labels()[0].textContent(), doc.find('label').get(0).control().id(),
            doc.find('button').get(0).formAction(), p.isSameNode(doc.find('p').get(0)), p.contains(doc.find('b').get(0)), seen.join()]; })()",
    );
    let expected = json!([
        "h.test",
        "81",
        "/p/q",
        "?x=1",
        "#f",
        "http:",
        "u",
        "http://h.test:81",
        ["next", "nofollow"],
        "link",
        "a x",
        ["a", "x"],
        "true",
        false,
        "a x",
        "2",
        "l",
        "two",
        1,
        2,
        "post",
        "a",
        3,
        "b",
        8,
        "L",
        "i",
        "/go",
        true,
        true,
        "0li,1li,2li"
    ]);
    assert_eq!(made, expected);
}

#[test]
fn mistakes_are_named() {
    let script = |call: &str| format!("import {{ parseHTML }} from 'k6/html';\nexport default () => {call};");
    assert_eq!(
        failure(&script("parseHTML('<p>').find('p:hover')")),
        "main.js:2: TypeError: invalid selector 'p:hover': ':hover' is not supported"
    );
    assert!(failure(&script("parseHTML(7)")).contains("parseHTML() needs a text"));
    assert!(failure(&script("parseHTML('x').find('a').get(0).id()")).starts_with("main.js:2: TypeError"));
}
