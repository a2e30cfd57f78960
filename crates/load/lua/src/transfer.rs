//! Values that go from one interpreter to another.

use mlua::{Lua, Table, Value};

/// Maximum depth of tables; a table that contains itself would never end.
const MAX_DEPTH: usize = 100;

/// The value of one interpreter as a value of another one: nil, boolean, number, string, and tables of these.
///
/// # Errors
/// For other types, and for tables that are nested too deeply.
pub(crate) fn transfer(value: &Value, to: &Lua) -> mlua::Result<Value> {
    copy(value, to, MAX_DEPTH)
}

fn copy(value: &Value, to: &Lua, depth: usize) -> mlua::Result<Value> {
    Ok(match value {
        Value::Nil => Value::Nil,
        Value::Boolean(value) => Value::Boolean(*value),
        Value::Integer(value) => Value::Integer(*value),
        Value::Number(value) => Value::Number(*value),
        Value::String(text) => Value::String(to.create_string(&*text.as_bytes())?),
        Value::Table(table) => Value::Table(copy_table(table, to, depth)?),
        other => return Err(mlua::Error::runtime(format!("cannot transfer '{}' to a thread", other.type_name()))),
    })
}

fn copy_table(table: &Table, to: &Lua, depth: usize) -> mlua::Result<Table> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(mlua::Error::runtime("cannot transfer a table that is nested more than 100 times"));
    };
    let copied = to.create_table()?;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        copied.raw_set(copy(&key, to, depth)?, copy(&value, to, depth)?)?;
    }
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_arrive_whole_and_functions_do_not() {
        let (from, to) = (Lua::new(), Lua::new());
        let value: Value = from.load(r#"{a = {1, 2, "x\0y"}, [true] = 1.5}"#).eval().unwrap();
        to.globals().set("got", transfer(&value, &to).unwrap()).unwrap();
        let same: bool = to.load(r#"got.a[1] == 1 and got.a[3] == "x\0y" and got[true] == 1.5"#).eval().unwrap();
        assert!(same);
        for (text, reason) in
            [("print", "'function'"), ("(function() local t = {}; t.t = t; return t end)()", "nested")]
        {
            let value: Value = from.load(text).eval().unwrap();
            let error = transfer(&value, &to).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
