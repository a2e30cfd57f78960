//! Modules `k6/http` and `weir:http`.

use rquickjs::function::{Constructor, Rest, This};
use rquickjs::module::{Declarations, Exports, ModuleDef};
use rquickjs::object::Property;
use rquickjs::{Ctx, Exception, Function, IntoJs as _, Object, Result, Value};

use super::globals::call_exported;
use super::http::{await_request, finished};
use super::http_calls::{later, request, set_expected, taken, with_body, without_body};
use super::jar_objects::{jar_class, jar_of_user};
use super::response_class::{register, set_prototype};
use super::response_json::json;
use super::user_of;

/// Module `k6/http`.
pub(super) struct HttpModule;

/// Functions that send a request with a body, and their methods.
const WITH_BODY: [(&str, &str); 6] = [
    ("del", "DELETE"),
    ("delete", "DELETE"),
    ("options", "OPTIONS"),
    ("patch", "PATCH"),
    ("post", "POST"),
    ("put", "PUT"),
];
/// Functions of modules that are loaded when one is called.
const LATE: [(&str, &str); 5] = [
    ("asyncRequest", "weir:requests"),
    ("batch", "weir:batch"),
    ("expectedStatuses", "weir:requests"),
    ("file", "weir:forms"),
    ("url", "weir:requests"),
];
/// Other names of functions and classes.
const OTHERS: [&str; 8] =
    ["CookieJar", "Response", "cookieJar", "default", "get", "head", "request", "setResponseCallback"];
/// Constants of TLS and OCSP, as scripts compare them.
const CONSTANTS: [(&str, &str); 19] = [
    ("SSL_3_0", "ssl3.0"),
    ("TLS_1_0", "tls1.0"),
    ("TLS_1_1", "tls1.1"),
    ("TLS_1_2", "tls1.2"),
    ("TLS_1_3", "tls1.3"),
    ("OCSP_STATUS_GOOD", "good"),
    ("OCSP_STATUS_REVOKED", "revoked"),
    ("OCSP_STATUS_SERVER_FAILED", "server_failed"),
    ("OCSP_STATUS_UNKNOWN", "unknown"),
    ("OCSP_REASON_AA_COMPROMISE", "aa_compromise"),
    ("OCSP_REASON_AFFILIATION_CHANGED", "affiliation_changed"),
    ("OCSP_REASON_CA_COMPROMISE", "ca_compromise"),
    ("OCSP_REASON_CERTIFICATE_HOLD", "certificate_hold"),
    ("OCSP_REASON_CESSATION_OF_OPERATION", "cessation_of_operation"),
    ("OCSP_REASON_KEY_COMPROMISE", "key_compromise"),
    ("OCSP_REASON_PRIVILEGE_WITHDRAWN", "privilege_withdrawn"),
    ("OCSP_REASON_REMOVE_FROM_CRL", "remove_from_crl"),
    ("OCSP_REASON_SUPERSEDED", "superseded"),
    ("OCSP_REASON_UNSPECIFIED", "unspecified"),
];

impl ModuleDef for HttpModule {
    fn declare(declare: &Declarations<'_>) -> Result<()> {
        let names = WITH_BODY.iter().chain(&LATE).chain(&CONSTANTS).map(|(name, _)| name).chain(&OTHERS);
        names.into_iter().try_for_each(|name| declare.declare(*name).map(drop))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        register(ctx, &*user_of(ctx)?)?;
        let all = Object::new(ctx.clone())?;
        let export = |name: &str, value: Value<'js>| {
            all.set(name, value.clone())?;
            exports.export(name, value).map(drop)
        };
        for (name, method) in WITH_BODY {
            export(name, with_body(ctx, method)?.into_value())?;
        }
        export("get", without_body(ctx, "GET")?.into_value())?;
        export("head", without_body(ctx, "HEAD")?.into_value())?;
        export("request", Function::new(ctx.clone(), request)?.into_value())?;
        export("setResponseCallback", Function::new(ctx.clone(), set_expected)?.into_value())?;
        for (name, module) in LATE {
            let call = move |ctx: Ctx<'js>, values: Rest<Value<'js>>| call_exported(&ctx, (module, name), values.0);
            export(name, Function::new(ctx.clone(), call)?.into_value())?;
        }
        for (name, value) in CONSTANTS {
            export(name, value.into_js(ctx)?)?;
        }
        export("Response", response_class(ctx)?.into_value())?;
        let (class, prototype) = jar_class(ctx)?;
        export("CookieJar", class.into_value())?;
        export("cookieJar", jar_of_user(ctx, prototype)?.into_value())?;
        exports.export("default", all.clone()).map(drop)
    }
}

/// Class of responses, whose objects requests make.
fn response_class<'js>(ctx: &Ctx<'js>) -> Result<Constructor<'js>> {
    let prototype = Object::new(ctx.clone())?;
    let method =
        |name: &str, function: Function<'js>| prototype.prop(name, Property::from(function).writable().configurable());
    method("json", Function::new(ctx.clone(), json)?)?;
    for name in ["html", "submitForm", "clickLink"] {
        let call = move |ctx: Ctx<'js>, this: This<Value<'js>>, values: Rest<Value<'js>>| {
            let values = std::iter::once(this.0).chain(values.0).collect();
            call_exported(&ctx, ("weir:response", name), values)
        };
        method(name, Function::new(ctx.clone(), call)?)?;
    }
    set_prototype(ctx, &*user_of(ctx)?, &prototype);
    let rejected = |ctx: Ctx<'js>| -> Result<Object<'js>> {
        Err(Exception::throw_type(&ctx, "a Response is what a request returns"))
    };
    Constructor::new_prototype(ctx, prototype, rejected)
}

/// Module `weir:http`, for modules of weir that send requests.
pub(super) struct RequestsModule;

const REQUEST_NAMES: [&str; 5] = ["awaitRequest", "finished", "later", "request", "taken"];

impl ModuleDef for RequestsModule {
    fn declare(declare: &Declarations<'_>) -> Result<()> {
        REQUEST_NAMES.iter().try_for_each(|name| declare.declare(*name).map(drop))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        register(ctx, &*user_of(ctx)?)?;
        exports.export("awaitRequest", Function::new(ctx.clone(), await_request)?)?;
        exports.export("finished", Function::new(ctx.clone(), finished)?)?;
        exports.export("later", Function::new(ctx.clone(), later)?)?;
        exports.export("request", Function::new(ctx.clone(), request)?)?;
        exports.export("taken", Function::new(ctx.clone(), taken)?)?;
        Ok(())
    }
}
