//! Objects of responses: what a script reads of one is made when it reads it.
#![allow(unsafe_code, reason = "a class of the interpreter is described as its library in C demands")]

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use rquickjs::{Ctx, Exception, Object, Result, Value, qjs};

use super::UserState;
use super::exchange::HttpResult;
use super::response_fields::{FIELDS, ResponseField, value_of};
use super::state::with_user;

/// Class of responses in the interpreter of a user.
#[derive(Debug)]
pub(crate) struct ResponseClass {
    id: qjs::JSClassID,
    /// Names of the fields, as the interpreter has them.
    names: [qjs::JSAtom; FIELDS.len()],
}

/// What an object of a response holds.
struct ResponseData {
    result: HttpResult,
    /// Values that were made, or that the script has set. Each is one reference of its own.
    kept: RefCell<Vec<(ResponseField, qjs::JSValue)>>,
}

/// The methods of the class that differ from those of other objects.
static EXOTIC: qjs::JSClassExoticMethods = qjs::JSClassExoticMethods {
    get_own_property: Some(get_own_property),
    get_own_property_names: Some(get_own_property_names),
    delete_property: None,
    define_own_property: Some(define_own_property),
    has_property: None,
    get_property: None,
    set_property: None,
};

/// Adds the class to the interpreter of a user.
///
/// # Errors
/// If there is no memory.
pub(super) fn register(ctx: &Ctx<'_>, user: &UserState) -> Result<()> {
    if user.responses.get().is_some() {
        return Ok(());
    }
    let raw = ctx.as_raw().as_ptr();
    let class = qjs::JSClassDef {
        class_name: c"Response".as_ptr(),
        finalizer: Some(finalize),
        gc_mark: Some(mark),
        call: None,
        // It is read alone.
        exotic: (&raw const EXOTIC).cast_mut(),
    };
    let mut id = qjs::JS_INVALID_CLASS_ID;
    // SAFETY: the description lives as long as the call, and what it points to for ever.
    let is_new = unsafe {
        let runtime = qjs::JS_GetRuntime(raw);
        qjs::JS_NewClassID(runtime, &raw mut id);
        qjs::JS_NewClass(runtime, id, &raw const class) == 0
    };
    if !is_new {
        return Err(Exception::throw_internal(ctx, "no memory for a class"));
    }
    // SAFETY: each text is read up to its length.
    let names = FIELDS.map(|(name, _)| unsafe { qjs::JS_NewAtomLen(raw, name.as_ptr().cast(), name.len() as _) });
    let _ = user.responses.set(ResponseClass { id, names });
    Ok(())
}

/// Sets the prototype of the responses of a user.
pub(super) fn set_prototype(ctx: &Ctx<'_>, user: &UserState, prototype: &Object<'_>) {
    let Some(class) = user.responses.get() else { return };
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the interpreter takes a reference of its own.
    unsafe { qjs::JS_SetClassProto(raw, class.id, qjs::JS_DupValue(raw, prototype.as_raw())) };
}

/// Object of a response.
///
/// # Errors
/// If there is no memory.
pub(super) fn new_response<'js>(ctx: &Ctx<'js>, user: &UserState, result: HttpResult) -> Result<Value<'js>> {
    let no_class = || Exception::throw_internal(ctx, "no class of responses");
    let class = user.responses.get().ok_or_else(no_class)?;
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the class was made in this interpreter; the object is its own.
    let object = unsafe { Value::from_raw(ctx.clone(), qjs::JS_NewObjectClass(raw, class.id)) };
    if object.is_exception() {
        return Err(rquickjs::Error::Exception);
    }
    let data = Box::new(ResponseData { result, kept: RefCell::default() });
    // SAFETY: the object has no other data, and its finalizer frees this one.
    unsafe { qjs::JS_SetOpaque(object.as_raw(), Box::into_raw(data).cast()) };
    Ok(object)
}

/// Value of a field of a response; `None` if the object is none.
///
/// # Errors
/// If there is no memory.
pub(super) fn field<'js>(ctx: &Ctx<'js>, object: &Value<'js>, field: ResponseField) -> Result<Option<Value<'js>>> {
    data_of(ctx, object).map(|data| data.value(ctx, field)).transpose()
}

/// Value of a field of a response that was made or set before; `None` for another one.
pub(super) fn kept<'js>(ctx: &Ctx<'js>, object: &Value<'js>, field: ResponseField) -> Option<Value<'js>> {
    data_of(ctx, object)?.kept(ctx, field)
}

/// Keeps a value of a response.
pub(super) fn keep<'js>(ctx: &Ctx<'js>, object: &Value<'js>, field: ResponseField, value: &Value<'js>) {
    if let Some(data) = data_of(ctx, object) {
        data.keep(ctx, field, value);
    }
}

/// Calls a function with the result behind an object; `None` if it is no response.
pub(super) fn with_result<'js, T>(
    ctx: &Ctx<'js>,
    object: &Value<'js>,
    call: impl FnOnce(&HttpResult) -> T,
) -> Option<T> {
    data_of(ctx, object).map(|data| call(&data.result))
}

fn data_of<'v>(ctx: &Ctx<'_>, object: &'v Value<'_>) -> Option<&'v ResponseData> {
    let id = with_user(ctx, |user| user.responses.get().map(|class| class.id)).flatten()?;
    // SAFETY: the library checks the class; its objects have this data from their first use up to their end, and `object`
    // keeps it alive.
    unsafe { qjs::JS_GetOpaque(object.as_raw(), id).cast::<ResponseData>().as_ref() }
}

impl ResponseData {
    fn kept<'js>(&self, ctx: &Ctx<'js>, field: ResponseField) -> Option<Value<'js>> {
        let kept = self.kept.borrow();
        let (_, value) = kept.iter().find(|(known, _)| *known == field)?;
        // SAFETY: the value is of this interpreter; the caller gets a reference of its own.
        Some(unsafe { Value::from_raw(ctx.clone(), qjs::JS_DupValue(ctx.as_raw().as_ptr(), *value)) })
    }

    fn keep<'js>(&self, ctx: &Ctx<'js>, field: ResponseField, value: &Value<'js>) {
        let raw = ctx.as_raw().as_ptr();
        // SAFETY: the value is of this interpreter; a reference of its own is kept.
        let value = unsafe { qjs::JS_DupValue(raw, value.as_raw()) };
        let mut kept = self.kept.borrow_mut();
        let old = match kept.iter_mut().find(|(known, _)| *known == field) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                kept.push((field, value));
                None
            }
        };
        drop(kept);
        if let Some(old) = old {
            // SAFETY: it was kept, and is no more. Nothing is borrowed: a finalizer may run.
            unsafe { qjs::JS_FreeValue(raw, old) };
        }
    }

    fn value<'js>(&self, ctx: &Ctx<'js>, field: ResponseField) -> Result<Value<'js>> {
        if let Some(value) = self.kept(ctx, field) {
            return Ok(value);
        }
        let value = value_of(ctx, &self.result, field)?;
        // A script may change an object, and compare it with itself.
        if value.is_object() || value.is_string() {
            self.keep(ctx, field, &value);
        }
        Ok(value)
    }
}

/// Field of a name; `None` for others.
fn field_of(ctx: &Ctx<'_>, name: qjs::JSAtom) -> Option<ResponseField> {
    let at = |user: &UserState| user.responses.get()?.names.iter().position(|known| *known == name);
    Some(FIELDS[with_user(ctx, at).flatten()?].1)
}

/// # Safety
/// The interpreter calls it, with a response and a place for the description or null.
unsafe extern "C" fn get_own_property(
    ctx: *mut qjs::JSContext,
    description: *mut qjs::JSPropertyDescriptor,
    object: qjs::JSValue,
    name: qjs::JSAtom,
) -> c_int {
    let Some(raw) = NonNull::new(ctx) else { return 0 };
    // SAFETY: it is the context that calls.
    let ctx = unsafe { Ctx::from_raw(raw) };
    let Some(field) = field_of(&ctx, name) else { return 0 };
    if description.is_null() {
        return 1;
    }
    // SAFETY: the caller keeps the object; this reference is one more.
    let object = unsafe { Value::from_raw(ctx.clone(), qjs::JS_DupValue(raw.as_ptr(), object)) };
    let Some(data) = data_of(&ctx, &object) else { return 0 };
    match data.value(&ctx, field) {
        Ok(value) => {
            let flags = qjs::JS_PROP_CONFIGURABLE | qjs::JS_PROP_ENUMERABLE | qjs::JS_PROP_WRITABLE;
            // SAFETY: the place is the caller's, who frees the reference.
            unsafe {
                description.write(qjs::JSPropertyDescriptor {
                    flags: flags as c_int,
                    value: qjs::JS_DupValue(raw.as_ptr(), value.as_raw()),
                    getter: qjs::JS_UNDEFINED,
                    setter: qjs::JS_UNDEFINED,
                });
            }
            1
        }
        Err(rquickjs::Error::Exception) => -1,
        Err(error) => {
            let _ = Exception::throw_internal(&ctx, &error.to_string());
            -1
        }
    }
}

/// # Safety
/// The interpreter calls it, with a response and places for the list and its length.
unsafe extern "C" fn get_own_property_names(
    ctx: *mut qjs::JSContext,
    list: *mut *mut qjs::JSPropertyEnum,
    length: *mut u32,
    _object: qjs::JSValue,
) -> c_int {
    let Some(raw) = NonNull::new(ctx) else { return -1 };
    // SAFETY: it is the context that calls.
    let ctx = unsafe { Ctx::from_raw(raw) };
    let names = with_user(&ctx, |user| user.responses.get().map(|class| class.names)).flatten();
    let Some(names) = names else { return -1 };
    // SAFETY: the list has room for all names; the caller frees it and the names.
    unsafe {
        let bytes = size_of::<qjs::JSPropertyEnum>() * names.len();
        let made = qjs::js_malloc(raw.as_ptr(), bytes as _).cast::<qjs::JSPropertyEnum>();
        if made.is_null() {
            return -1;
        }
        for (index, name) in names.iter().enumerate() {
            let atom = qjs::JS_DupAtom(raw.as_ptr(), *name);
            made.add(index).write(qjs::JSPropertyEnum { is_enumerable: true, atom });
        }
        list.write(made);
        length.write(names.len() as u32);
    }
    0
}

/// # Safety
/// The interpreter calls it, with a response.
unsafe extern "C" fn define_own_property(
    ctx: *mut qjs::JSContext,
    object: qjs::JSValue,
    name: qjs::JSAtom,
    value: qjs::JSValue,
    getter: qjs::JSValue,
    setter: qjs::JSValue,
    flags: c_int,
) -> c_int {
    let Some(raw) = NonNull::new(ctx) else { return -1 };
    // SAFETY: it is the context that calls.
    let ctx = unsafe { Ctx::from_raw(raw) };
    let has = |flag: u32| flags & flag as c_int != 0;
    if has(qjs::JS_PROP_HAS_VALUE)
        && !has(qjs::JS_PROP_HAS_GET | qjs::JS_PROP_HAS_SET)
        && let Some(field) = field_of(&ctx, name)
    {
        // SAFETY: the caller keeps both; these references are further ones.
        let (object, value) = unsafe {
            let dup = |value| Value::from_raw(ctx.clone(), qjs::JS_DupValue(raw.as_ptr(), value));
            (dup(object), dup(value))
        };
        keep(&ctx, &object, field, &value);
        return 1;
    }
    // SAFETY: the arguments are those of the caller.
    unsafe {
        let flags = flags | qjs::JS_PROP_NO_EXOTIC as c_int;
        qjs::JS_DefineProperty(raw.as_ptr(), object, name, value, getter, setter, flags)
    }
}

/// Data of an object of any interpreter.
///
/// # Safety
/// The object is a response.
unsafe fn any_data(object: qjs::JSValue) -> *mut ResponseData {
    let mut id = qjs::JS_INVALID_CLASS_ID;
    // SAFETY: the place of the class is written alone.
    let data: *mut c_void = unsafe { qjs::JS_GetAnyOpaque(object, &raw mut id) };
    data.cast()
}

/// # Safety
/// The interpreter calls it once, at the end of a response.
unsafe extern "C" fn finalize(runtime: *mut qjs::JSRuntime, object: qjs::JSValue) {
    // SAFETY: the data is what `new_response` has set, which nothing else frees.
    unsafe {
        let data = any_data(object);
        if data.is_null() {
            return;
        }
        let data = Box::from_raw(data);
        for (_, value) in data.kept.into_inner() {
            qjs::JS_FreeValueRT(runtime, value);
        }
    }
}

/// # Safety
/// The interpreter calls it while it looks for what is not reached any more.
unsafe extern "C" fn mark(runtime: *mut qjs::JSRuntime, object: qjs::JSValue, mark: qjs::JS_MarkFunc) {
    // SAFETY: the data is there as long as the object; no script runs meanwhile.
    unsafe {
        if let Some(data) = any_data(object).as_ref() {
            // What is borrowed is being read, and its values are held by the reader.
            if let Ok(kept) = data.kept.try_borrow() {
                kept.iter().for_each(|(_, value)| qjs::JS_MarkValue(runtime, *value, mark));
            }
        }
    }
}
