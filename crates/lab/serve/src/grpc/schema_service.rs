//! Reflection of the server.

use prost::Message;
use weir_grpc::GrpcSchema;
use weir_grpc::reflection::{
    FileDescriptions, ReflectionError, ReflectionRequest, ReflectionResponse, ServiceEntry, ServiceNames,
};

use super::call_error::UNIMPLEMENTED;

const NOT_FOUND: i32 = 5;

/// Response to a request of reflection.
pub(super) fn reflect(schema: &GrpcSchema, services: &[&str], request: ReflectionRequest) -> Vec<u8> {
    let mut response = ReflectionResponse::default();
    let missing = |what: &str| ReflectionError { code: NOT_FOUND, message: format!("unknown: {what}") };
    let file = |name: &str| schema.file(name).map(|files| FileDescriptions { files });
    if let Some(name) = &request.file_by_filename {
        response.files = file(name);
        response.error = response.files.is_none().then(|| missing(name));
    } else if let Some(symbol) = &request.file_containing_symbol {
        response.files = schema.file_of(symbol).and_then(|name| file(&name));
        response.error = response.files.is_none().then(|| missing(symbol));
    } else if request.list_services.is_some() {
        let services = services.iter().map(|name| ServiceEntry { name: (*name).to_owned() }).collect();
        response.services = Some(ServiceNames { services });
    } else {
        let message = "this kind of request is not implemented".to_owned();
        response.error = Some(ReflectionError { code: i32::from(UNIMPLEMENTED), message });
    }
    response.valid_host.clone_from(&request.host);
    response.original_request = Some(request);
    response.encode_to_vec()
}
