//! Flags of calls of gRPC, shared by `load`, `capacity` and `run`.

use std::path::PathBuf;

use clap::Args;
use weir_load::grpc::GrpcOptions;

/// Heading of these flags in the help.
const GRPC: &str = "gRPC";

/// Schema of the service of a grpc URL.
#[derive(Clone, Debug, Args)]
pub(super) struct GrpcArgs {
    /// read the service's schema from this .proto file; repeatable [default: the server's reflection]
    #[arg(long = "proto", value_name = "FILE", help_heading = GRPC)]
    protos: Vec<PathBuf>,
    /// look for .proto files and their imports in this folder; repeatable [default: .]
    #[arg(long = "proto-path", value_name = "FOLDER", help_heading = GRPC)]
    proto_paths: Vec<PathBuf>,
    /// read the service's schema from this descriptor set, imports included
    #[arg(long, value_name = "FILE", help_heading = GRPC)]
    protoset: Option<PathBuf>,
}

impl GrpcArgs {
    pub(super) fn into_options(self) -> GrpcOptions {
        GrpcOptions::of_files(self.protos, self.proto_paths, self.protoset)
    }
}
