//! Flags of calls of gRPC, shared by `load`, `capacity` and `run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weir_base::units;
use weir_load::grpc::GrpcOptions;

/// Heading of these flags in the help.
const GRPC: &str = "gRPC";

/// Schema of the service of a grpc URL, and times of the messages of its calls.
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
    /// send the messages of a call at this interval [default: together]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = GRPC)]
    message_interval: Option<Duration>,
}

impl GrpcArgs {
    pub(super) fn into_options(self) -> GrpcOptions {
        let mut options = GrpcOptions::of_files(self.protos, self.proto_paths, self.protoset);
        options.message_interval = self.message_interval.map(Into::into);
        options
    }
}
