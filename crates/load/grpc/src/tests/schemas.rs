//! Schemas of files, sets and reflection.

use proptest::prelude::*;
use prost::Message;

use super::{method, schema, source};
use crate::reflection::{
    FileDescriptions, ReflectionError, ReflectionRequest, ReflectionResponse, ServiceEntry, ServiceNames,
};
use crate::{GrpcSchema, MethodKind, MethodName, Reflection};

#[test]
fn a_method_has_a_path_and_a_kind() {
    let kinds = ["Get", "Watch", "Upload", "Chat"].map(|name| method(name).kind());
    let all = [MethodKind::Unary, MethodKind::ServerStream, MethodKind::ClientStream, MethodKind::Bidirectional];
    assert_eq!(kinds, all);
    assert_eq!(
        kinds.map(|kind| (kind.has_request_stream(), kind.has_response_stream())),
        [(false, false), (false, true), (true, false), (true, true)]
    );
    assert_eq!(method("Get").path(), "/shop.v1.Shop/Get");
}

#[test]
fn an_unknown_name_has_a_suggestion_and_those_that_are_there() {
    for (path, why) in [
        (
            "/shop.v1.Shap/Get",
            "unknown service 'shop.v1.Shap'; did you mean 'shop.v1.Shop'? there are shop.v1.Shop, shop.v1.Stock",
        ),
        ("/shop.v1.Shop/get", "unknown method 'get'; did you mean 'Get'? shop.v1.Shop has Get, Watch, Upload, Chat"),
        ("/shop.v1.Stock/Q", "unknown method 'Q'; shop.v1.Stock has Get"),
        ("/Stock/Get", "unknown service 'Stock'; did you mean 'shop.v1.Stock'? there are shop.v1.Shop, shop.v1.Stock"),
    ] {
        assert_eq!(schema().method(&MethodName::parse(path).expect("valid")).err().as_deref(), Some(why));
    }
    for path in ["", "/", "/a", "/a/", "//b", "/a/b/c"] {
        assert!(MethodName::parse(path).is_err_and(|why| why.contains("package.Service/Method")), "{path}");
    }
    for (path, words) in [("/a.b.C.D", "write /a.b.C/D"), ("/a.B/C?d=1", "calls have no query")] {
        assert!(MethodName::parse(path).is_err_and(|why| why.contains(words)), "{path}");
    }
}

#[test]
fn a_mistake_in_a_file_has_its_position() {
    let compile = |shop: &str| {
        let shop = shop.to_owned();
        let mut read = move |name: &str| Ok(if name == "a.proto" { Some(shop.clone()) } else { source(name) });
        GrpcSchema::compile(&["a.proto".to_owned()], &mut read).err().unwrap_or_default()
    };
    for (text, why) in [
        ("syntax = \"proto3\";\nmessage A { strin a = 1; }", "a.proto:2:13"),
        ("syntax = \"proto3\";\nmessage A {", "a.proto: expected"),
        ("syntax = \"proto3\";\nimport \"none.proto\";", "none.proto"),
        ("edition = \"2023\";\n", "a.proto: it has an edition of protobuf; proto2 and proto3 are read"),
    ] {
        let found = compile(text);
        assert!(found.contains(why) && found.lines().count() == 1, "{found}");
    }
    assert_eq!(compile("\u{feff}syntax = \"proto3\";"), "");
    let found = GrpcSchema::compile(&["none.proto".to_owned()], &mut |_| Ok(None)).err();
    assert_eq!(found.as_deref(), Some("no file 'none.proto'"));
}

#[test]
fn a_set_without_imports_is_rejected_with_the_remedy() {
    let whole = schema().to_descriptor_set();
    assert!(GrpcSchema::from_descriptor_set(&whole).is_ok_and(|again| again.services() == schema().services()));
    let found = GrpcSchema::from_descriptor_set(b"\x0a\x03abc").expect_err("not a set");
    assert!(found.contains("--include_imports"), "{found}");
}

#[test]
fn a_set_that_cannot_be_read_is_an_error_with_its_file() {
    let file = |fields: &[(u8, &str)]| {
        let fields =
            fields.iter().flat_map(|(tag, text)| [&[tag << 3 | 2, text.len() as u8], text.as_bytes()].concat());
        let fields: Vec<u8> = fields.collect();
        [&[0x0a, fields.len() as u8], fields.as_slice()].concat()
    };
    for (set, why) in [
        (file(&[(1, "a.proto"), (12, "editions")]), "'a.proto' has an edition of protobuf"),
        (file(&[(1, "a.proto"), (12, "proto4")]), "'a.proto' has the unknown syntax 'proto4'"),
        (file(&[(1, "a.proto"), (3, "b.proto")]), "'a.proto' imports 'b.proto', which is not in it"),
    ] {
        let found = GrpcSchema::from_descriptor_set(&set).expect_err(why);
        assert!(found.contains(why) && found.lines().count() == 1, "{found}");
    }
}

/// Responses of a server with the files of `schema`, of which it sends `per_response` at a time.
fn served(request: &[u8], files: &[(String, Vec<u8>)], per_response: usize) -> ReflectionResponse {
    let request = ReflectionRequest::decode(request).expect("a request");
    let with = |name: &str| {
        let at = files.iter().position(|(known, _)| known == name);
        let found: Vec<Vec<u8>> =
            at.into_iter().flat_map(|at| &files[at..]).map(|(_, bytes)| bytes.clone()).take(per_response).collect();
        match found.is_empty() {
            false => {
                ReflectionResponse { files: Some(FileDescriptions { files: found }), ..ReflectionResponse::default() }
            }
            true => ReflectionResponse {
                error: Some(ReflectionError { code: 5, message: format!("{name} not found") }),
                ..ReflectionResponse::default()
            },
        }
    };
    if request.list_services.is_some() {
        let services = ["shop.v1.Shop", "shop.v1.Stock", "grpc.reflection.v1.ServerReflection"];
        let services = services.map(|name| ServiceEntry { name: name.to_owned() }).to_vec();
        return ReflectionResponse { services: Some(ServiceNames { services }), ..ReflectionResponse::default() };
    }
    match (request.file_by_filename, request.file_containing_symbol) {
        (Some(name), _) => with(&name),
        (_, Some(symbol)) if symbol.starts_with("shop.v1.Sho") && symbol.len() == 12 => with("shop/shop.proto"),
        (_, symbol) => with(&symbol.unwrap_or_default()),
    }
}

fn reflected(service: &str, per_response: usize) -> Result<GrpcSchema, String> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let set = prost_reflect::DescriptorPool::decode(schema().to_descriptor_set().as_slice()).expect("a set");
    // The file of the service comes first, and its imports behind it.
    for file in set.files() {
        files.insert(0, (file.name().to_owned(), file.encode_to_vec()));
    }
    let mut search = Reflection::new(service);
    loop {
        let requests = search.requests();
        if requests.is_empty() {
            return search.finish();
        }
        for request in requests {
            search.take(&served(&request, &files, per_response).encode_to_vec())?;
        }
    }
}

#[test]
fn reflection_finds_a_schema_in_any_number_of_rounds() {
    for per_response in 1..5 {
        let found = reflected("shop.v1.Shop", per_response).expect("found");
        let get = found.method(&MethodName::parse("shop.v1.Shop/Get").expect("valid")).expect("there");
        assert_eq!(
            get.encode("{\"at\": \"2026-01-02T03:04:05Z\"}", false).map(|body| body.len()),
            Ok(13),
            "{per_response}"
        );
    }
    let why = reflected("shop.v1.Shap", 9).err();
    let text = "unknown service 'shop.v1.Shap'; did you mean 'shop.v1.Shop'? there are shop.v1.Shop, shop.v1.Stock";
    assert_eq!(why.as_deref(), Some(text));
}

#[test]
fn a_server_that_always_names_further_files_is_given_up() {
    let mut search = Reflection::new("a.B");
    let mut rounds = 0;
    while !search.requests().is_empty() {
        rounds += 1;
        // A file that imports the next one.
        let (name, import) = (format!("{rounds}.proto"), format!("{}.proto", rounds + 1));
        let mut file = Vec::new();
        for (tag, text) in [(0x0a, name), (0x1a, import)] {
            file.extend([tag, text.len() as u8]);
            file.extend(text.bytes());
        }
        let files = Some(FileDescriptions { files: vec![file] });
        search.take(&ReflectionResponse { files, ..ReflectionResponse::default() }.encode_to_vec()).expect("valid");
        assert!(rounds < 100);
    }
    assert!(search.finish().expect_err("in part").contains("--proto"));
}

proptest! {
    #[test]
    fn any_bytes_of_a_server_are_a_schema_or_an_error(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4)) {
        let mut search = Reflection::new("a.B");
        let _ = search.requests();
        if messages.iter().all(|message| search.take(message).is_ok()) {
            let _ = search.requests();
            prop_assert!(search.finish().is_err());
        }
        let _ = GrpcSchema::from_descriptor_set(&messages.concat());
    }
}
