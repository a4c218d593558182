//! Messages of `apiextensions.k8s.io/v1`.

use super::message::{Message, Type::*, many, map, message, one, pointer};
use super::meta;

pub(super) static CUSTOM_RESOURCE_COLUMN_DEFINITION: Message = message(
    "CustomResourceColumnDefinition",
    &[
        one(1, "name", String).required(),
        one(2, "type", String).required(),
        one(3, "format", String),
        one(4, "description", String),
        one(5, "priority", Int32),
        one(6, "jsonPath", String).required(),
    ],
);

pub(super) static CUSTOM_RESOURCE_CONVERSION: Message = message(
    "CustomResourceConversion",
    &[one(1, "strategy", String).required(), pointer(2, "webhook", Of(&WEBHOOK_CONVERSION))],
);

pub(super) static CUSTOM_RESOURCE_DEFINITION: Message = message(
    "CustomResourceDefinition",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&CUSTOM_RESOURCE_DEFINITION_SPEC)),
        one(3, "status", Of(&CUSTOM_RESOURCE_DEFINITION_STATUS)),
    ],
);

pub(super) static CUSTOM_RESOURCE_DEFINITION_CONDITION: Message = message(
    "CustomResourceDefinitionCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(3, "lastTransitionTime", Time),
        one(4, "reason", String),
        one(5, "message", String),
    ],
);

pub(super) static CUSTOM_RESOURCE_DEFINITION_NAMES: Message = message(
    "CustomResourceDefinitionNames",
    &[
        one(1, "plural", String).kept(),
        one(2, "singular", String),
        many(3, "shortNames", String),
        one(4, "kind", String).kept(),
        one(5, "listKind", String),
        many(6, "categories", String),
    ],
);

pub(super) static CUSTOM_RESOURCE_DEFINITION_SPEC: Message = message(
    "CustomResourceDefinitionSpec",
    &[
        one(1, "group", String).required(),
        one(3, "names", Of(&CUSTOM_RESOURCE_DEFINITION_NAMES)),
        one(4, "scope", String).required(),
        many(7, "versions", Of(&CUSTOM_RESOURCE_DEFINITION_VERSION)),
        pointer(9, "conversion", Of(&CUSTOM_RESOURCE_CONVERSION)),
        one(10, "preserveUnknownFields", Bool),
    ],
);

pub(super) static CUSTOM_RESOURCE_DEFINITION_STATUS: Message = message(
    "CustomResourceDefinitionStatus",
    &[
        many(1, "conditions", Of(&CUSTOM_RESOURCE_DEFINITION_CONDITION)).keyed(&["type"]),
        one(2, "acceptedNames", Of(&CUSTOM_RESOURCE_DEFINITION_NAMES)),
        many(3, "storedVersions", String),
    ],
);

pub(super) static CUSTOM_RESOURCE_DEFINITION_VERSION: Message = message(
    "CustomResourceDefinitionVersion",
    &[
        one(1, "name", String).required(),
        one(2, "served", Bool).kept(),
        one(3, "storage", Bool).kept(),
        pointer(4, "schema", Of(&CUSTOM_RESOURCE_VALIDATION)),
        pointer(5, "subresources", Of(&CUSTOM_RESOURCE_SUBRESOURCES)),
        many(6, "additionalPrinterColumns", Of(&CUSTOM_RESOURCE_COLUMN_DEFINITION)),
        one(7, "deprecated", Bool),
        pointer(8, "deprecationWarning", String),
        many(9, "selectableFields", Of(&SELECTABLE_FIELD)),
    ],
);

pub(super) static CUSTOM_RESOURCE_SUBRESOURCE_SCALE: Message = message(
    "CustomResourceSubresourceScale",
    &[
        one(1, "specReplicasPath", String).required(),
        one(2, "statusReplicasPath", String).required(),
        pointer(3, "labelSelectorPath", String),
    ],
);

pub(super) static CUSTOM_RESOURCE_SUBRESOURCE_STATUS: Message = message("CustomResourceSubresourceStatus", &[]);

pub(super) static CUSTOM_RESOURCE_SUBRESOURCES: Message = message(
    "CustomResourceSubresources",
    &[
        pointer(1, "status", Of(&CUSTOM_RESOURCE_SUBRESOURCE_STATUS)),
        pointer(2, "scale", Of(&CUSTOM_RESOURCE_SUBRESOURCE_SCALE)),
    ],
);

pub(super) static CUSTOM_RESOURCE_VALIDATION: Message =
    message("CustomResourceValidation", &[pointer(1, "openAPIV3Schema", Of(&JSON_SCHEMA_PROPS))]);

pub(super) static EXTERNAL_DOCUMENTATION: Message =
    message("ExternalDocumentation", &[one(1, "description", String), one(2, "url", String)]);

pub(crate) static JSON_SCHEMA_PROPS: Message = message(
    "JSONSchemaProps",
    &[
        one(1, "id", String),
        one(2, "$schema", String),
        pointer(3, "$ref", String),
        one(4, "description", String),
        one(5, "type", String),
        one(6, "format", String),
        one(7, "title", String),
        pointer(8, "default", Json),
        pointer(9, "maximum", Double),
        one(10, "exclusiveMaximum", Bool),
        pointer(11, "minimum", Double),
        one(12, "exclusiveMinimum", Bool),
        pointer(13, "maxLength", Int64),
        pointer(14, "minLength", Int64),
        one(15, "pattern", String),
        pointer(16, "maxItems", Int64),
        pointer(17, "minItems", Int64),
        one(18, "uniqueItems", Bool),
        pointer(19, "multipleOf", Double),
        many(20, "enum", Json),
        pointer(21, "maxProperties", Int64),
        pointer(22, "minProperties", Int64),
        many(23, "required", String),
        pointer(24, "items", SchemaOrArray),
        many(25, "allOf", Of(&JSON_SCHEMA_PROPS)),
        many(26, "oneOf", Of(&JSON_SCHEMA_PROPS)),
        many(27, "anyOf", Of(&JSON_SCHEMA_PROPS)),
        pointer(28, "not", Of(&JSON_SCHEMA_PROPS)),
        map(29, "properties", Of(&JSON_SCHEMA_PROPS)),
        pointer(30, "additionalProperties", SchemaOrBool),
        map(31, "patternProperties", Of(&JSON_SCHEMA_PROPS)),
        map(32, "dependencies", SchemaOrStrings),
        pointer(33, "additionalItems", SchemaOrBool),
        map(34, "definitions", Of(&JSON_SCHEMA_PROPS)),
        pointer(35, "externalDocs", Of(&EXTERNAL_DOCUMENTATION)),
        pointer(36, "example", Json),
        one(37, "nullable", Bool),
        pointer(38, "x-kubernetes-preserve-unknown-fields", Bool),
        one(39, "x-kubernetes-embedded-resource", Bool),
        one(40, "x-kubernetes-int-or-string", Bool),
        many(41, "x-kubernetes-list-map-keys", String),
        pointer(42, "x-kubernetes-list-type", String),
        pointer(43, "x-kubernetes-map-type", String),
        many(44, "x-kubernetes-validations", Of(&VALIDATION_RULE)).keyed(&["rule"]).merge("rule"),
    ],
);

pub(super) static SELECTABLE_FIELD: Message = message("SelectableField", &[one(1, "jsonPath", String).required()]);

pub(super) static SERVICE_REFERENCE: Message = message(
    "ServiceReference",
    &[
        one(1, "namespace", String).required(),
        one(2, "name", String).required(),
        pointer(3, "path", String),
        pointer(4, "port", Int32),
    ],
);

pub(super) static VALIDATION_RULE: Message = message(
    "ValidationRule",
    &[
        one(1, "rule", String).required(),
        one(2, "message", String),
        one(3, "messageExpression", String),
        pointer(4, "reason", String),
        one(5, "fieldPath", String),
        pointer(6, "optionalOldSelf", Bool),
    ],
);

pub(super) static WEBHOOK_CLIENT_CONFIG: Message = message(
    "WebhookClientConfig",
    &[pointer(1, "service", Of(&SERVICE_REFERENCE)), one(2, "caBundle", Bytes), pointer(3, "url", String)],
);

pub(super) static WEBHOOK_CONVERSION: Message = message(
    "WebhookConversion",
    &[pointer(2, "clientConfig", Of(&WEBHOOK_CLIENT_CONFIG)), many(3, "conversionReviewVersions", String)],
);
