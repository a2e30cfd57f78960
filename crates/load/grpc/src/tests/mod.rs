//! Schemas, methods and reflection on descriptions of all kinds.

mod json;
mod schemas;

use crate::{GrpcMethod, GrpcSchema, MethodName};

const SHOP: &str = r#"
syntax = "proto3";
package shop.v1;
import "shop/item.proto";
import "google/protobuf/timestamp.proto";
service Shop {
  rpc Get(Order) returns (Order);
  rpc Watch(Order) returns (stream Order);
  rpc Upload(stream Order) returns (Order);
  rpc Chat(stream Order) returns (stream Order);
}
service Stock { rpc Get(Item) returns (Item); }
message Order {
  int64 id = 1;
  repeated Item items = 2;
  map<string, uint64> counts = 3;
  google.protobuf.Timestamp at = 4;
  oneof payment { string card = 5; bytes token = 6; }
  double price = 7;
  optional bool paid = 8;
}
"#;
const ITEM: &str = "syntax = \"proto3\";\npackage shop.v1;\nenum Size { SMALL = 0; LARGE = 1; }\n\
    message Item { string item_name = 1; Size size = 2; Item part = 3; }\n";

fn source(name: &str) -> Option<String> {
    match name {
        "shop/shop.proto" => Some(SHOP.to_owned()),
        "shop/item.proto" => Some(ITEM.to_owned()),
        _ => None,
    }
}

fn schema() -> GrpcSchema {
    GrpcSchema::compile(&["shop/shop.proto".to_owned()], &mut |name| Ok(source(name))).expect("valid")
}

fn method(name: &str) -> GrpcMethod {
    schema().method(&MethodName::parse(&format!("/shop.v1.Shop/{name}")).expect("valid")).expect("there")
}
