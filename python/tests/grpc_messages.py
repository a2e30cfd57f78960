"""Messages of gRPC that other implementations read and write as well."""

from typing import Any

MESSAGES: list[dict[str, Any]] = [
    {},
    {"doubleValue": 1.5, "floatValue": -0.25},
    {"doubleValue": "NaN"},
    {"doubleValue": "Infinity", "floatValue": "-Infinity"},
    {"doubleValue": 1e300},
    {"floatValue": 0.1},
    {"int32Value": -2147483648, "uint32Value": 4294967295},
    {"int64Value": "-9223372036854775808", "uint64Value": "18446744073709551615"},
    {"sint32Value": -1, "sint64Value": "-1"},
    {"fixed32Value": 7, "fixed64Value": "7", "sfixed32Value": -7, "sfixed64Value": "-7"},
    {"boolValue": True, "stringValue": 'a "quoted" ☺ 😈 \n\t\u2028', "bytesValue": "q6vN7w=="},
    {"enumValue": "RESET", "repeatedEnum": ["NO_FAULT", "PAGE"]},
    {"enumValue": 77},
    {"messageValue": {"messageValue": {"int32Value": 1}}},
    {"repeatedInt64": ["1", "2", "3"], "repeatedString": ["", "a"]},
    {"repeatedMessage": [{}, {"boolValue": True}]},
    {"stringMap": {"": "", "k": "v", "ß": "☺"}},
    {"messageMap": {"-1": {"int32Value": 1}, "2": {}}},
    {"boolMap": {"true": 1.0, "false": "NaN"}},
    {"choiceText": ""},
    {"choiceNumber": "0"},
    {"choiceMessage": {}},
    {"optionalInt32": 0, "optionalString": ""},
    {"timestamp": "2026-01-02T03:04:05.000060Z"},
    {"timestamp": "0001-01-01T00:00:00Z", "duration": "-1.500s"},
    {"duration": "315576000000s"},
    {"fieldMask": "stringValue,messageValue.int32Value"},
    {"struct": {"a": [1.0, None, {"b": True}], "c": "d"}, "value": None, "listValue": [1.0, "x"]},
    {"any": {"@type": "type.googleapis.com/weir.test.v1.EchoReply", "text": "a", "number": "5"}},
    {"any": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "2s"}},
    {"int64Wrapper": "5", "boolWrapper": False, "stringWrapper": "", "bytesWrapper": "AA==", "doubleWrapper": 0.5},
    {"snakeCaseName": "a", "otherName": "b"},
]
"""Messages of all kinds, as protobuf writes them."""
