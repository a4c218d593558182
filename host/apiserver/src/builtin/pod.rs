//! The pod template: everything a `PodSpec` can hold except volumes.

use super::message::{Message, Type::*, atomic_message, inline, many, map, message, one, pointer};
use super::{core, meta, node, pod_status, volume};

pub(super) static AFFINITY: Message = message(
    "Affinity",
    &[
        pointer(1, "nodeAffinity", Of(&node::NODE_AFFINITY)),
        pointer(2, "podAffinity", Of(&POD_AFFINITY)),
        pointer(3, "podAntiAffinity", Of(&POD_ANTI_AFFINITY)),
    ],
);

pub(super) static APP_ARMOR_PROFILE: Message =
    message("AppArmorProfile", &[one(1, "type", String).required(), pointer(2, "localhostProfile", String)]);

pub(super) static CAPABILITIES: Message = message("Capabilities", &[many(1, "add", String), many(2, "drop", String)]);

pub(super) static CONFIG_MAP_ENV_SOURCE: Message =
    message("ConfigMapEnvSource", &[inline(1, Of(&core::LOCAL_OBJECT_REFERENCE)), pointer(2, "optional", Bool)]);

pub(super) static CONFIG_MAP_KEY_SELECTOR: Message = atomic_message(
    "ConfigMapKeySelector",
    &[inline(1, Of(&core::LOCAL_OBJECT_REFERENCE)), one(2, "key", String).required(), pointer(3, "optional", Bool)],
);

pub(super) static CONTAINER: Message = message(
    "Container",
    &[
        one(1, "name", String).required(),
        one(2, "image", String),
        many(3, "command", String),
        many(4, "args", String),
        one(5, "workingDir", String),
        many(6, "ports", Of(&CONTAINER_PORT)).keyed(&["containerPort", "protocol"]).merge("containerPort"),
        many(7, "env", Of(&ENV_VAR)).keyed(&["name"]).merge("name"),
        one(8, "resources", Of(&RESOURCE_REQUIREMENTS)),
        many(9, "volumeMounts", Of(&VOLUME_MOUNT)).keyed(&["mountPath"]).merge("mountPath"),
        pointer(10, "livenessProbe", Of(&PROBE)),
        pointer(11, "readinessProbe", Of(&PROBE)),
        pointer(12, "lifecycle", Of(&LIFECYCLE)),
        one(13, "terminationMessagePath", String),
        one(14, "imagePullPolicy", String),
        pointer(15, "securityContext", Of(&SECURITY_CONTEXT)),
        one(16, "stdin", Bool),
        one(17, "stdinOnce", Bool),
        one(18, "tty", Bool),
        many(19, "envFrom", Of(&ENV_FROM_SOURCE)),
        one(20, "terminationMessagePolicy", String),
        many(21, "volumeDevices", Of(&VOLUME_DEVICE)).keyed(&["devicePath"]).merge("devicePath"),
        pointer(22, "startupProbe", Of(&PROBE)),
        many(23, "resizePolicy", Of(&CONTAINER_RESIZE_POLICY)),
        pointer(24, "restartPolicy", String),
        many(25, "restartPolicyRules", Of(&CONTAINER_RESTART_RULE)),
    ],
);

pub(super) static CONTAINER_PORT: Message = message(
    "ContainerPort",
    &[
        one(1, "name", String),
        one(2, "hostPort", Int32),
        one(3, "containerPort", Int32).kept(),
        one(4, "protocol", String).default("TCP"),
        one(5, "hostIP", String),
    ],
);

pub(super) static CONTAINER_RESIZE_POLICY: Message = message(
    "ContainerResizePolicy",
    &[one(1, "resourceName", String).required(), one(2, "restartPolicy", String).required()],
);

pub(super) static CONTAINER_RESTART_RULE: Message = message(
    "ContainerRestartRule",
    &[one(1, "action", String).required(), pointer(2, "exitCodes", Of(&CONTAINER_RESTART_RULE_ON_EXIT_CODES))],
);

pub(super) static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Message = message(
    "ContainerRestartRuleOnExitCodes",
    &[one(1, "operator", String).required(), many(2, "values", Int32).set()],
);

pub(super) static ENV_FROM_SOURCE: Message = message(
    "EnvFromSource",
    &[
        one(1, "prefix", String),
        pointer(2, "configMapRef", Of(&CONFIG_MAP_ENV_SOURCE)),
        pointer(3, "secretRef", Of(&SECRET_ENV_SOURCE)),
    ],
);

pub(super) static ENV_VAR: Message = message(
    "EnvVar",
    &[one(1, "name", String).required(), one(2, "value", String), pointer(3, "valueFrom", Of(&ENV_VAR_SOURCE))],
);

pub(super) static ENV_VAR_SOURCE: Message = message(
    "EnvVarSource",
    &[
        pointer(1, "fieldRef", Of(&core::OBJECT_FIELD_SELECTOR)),
        pointer(2, "resourceFieldRef", Of(&core::RESOURCE_FIELD_SELECTOR)),
        pointer(3, "configMapKeyRef", Of(&CONFIG_MAP_KEY_SELECTOR)),
        pointer(4, "secretKeyRef", Of(&SECRET_KEY_SELECTOR)),
        pointer(5, "fileKeyRef", Of(&FILE_KEY_SELECTOR)),
    ],
);

pub(super) static EPHEMERAL_CONTAINER: Message =
    message("EphemeralContainer", &[inline(1, Of(&EPHEMERAL_CONTAINER_COMMON)), one(2, "targetContainerName", String)]);

pub(super) static EPHEMERAL_CONTAINER_COMMON: Message = message(
    "EphemeralContainerCommon",
    &[
        one(1, "name", String).required(),
        one(2, "image", String),
        many(3, "command", String),
        many(4, "args", String),
        one(5, "workingDir", String),
        many(6, "ports", Of(&CONTAINER_PORT)).keyed(&["containerPort", "protocol"]).merge("containerPort"),
        many(7, "env", Of(&ENV_VAR)).keyed(&["name"]).merge("name"),
        one(8, "resources", Of(&RESOURCE_REQUIREMENTS)),
        many(9, "volumeMounts", Of(&VOLUME_MOUNT)).keyed(&["mountPath"]).merge("mountPath"),
        pointer(10, "livenessProbe", Of(&PROBE)),
        pointer(11, "readinessProbe", Of(&PROBE)),
        pointer(12, "lifecycle", Of(&LIFECYCLE)),
        one(13, "terminationMessagePath", String),
        one(14, "imagePullPolicy", String),
        pointer(15, "securityContext", Of(&SECURITY_CONTEXT)),
        one(16, "stdin", Bool),
        one(17, "stdinOnce", Bool),
        one(18, "tty", Bool),
        many(19, "envFrom", Of(&ENV_FROM_SOURCE)),
        one(20, "terminationMessagePolicy", String),
        many(21, "volumeDevices", Of(&VOLUME_DEVICE)).keyed(&["devicePath"]).merge("devicePath"),
        pointer(22, "startupProbe", Of(&PROBE)),
        many(23, "resizePolicy", Of(&CONTAINER_RESIZE_POLICY)),
        pointer(24, "restartPolicy", String),
        many(25, "restartPolicyRules", Of(&CONTAINER_RESTART_RULE)),
    ],
);

pub(super) static EXEC_ACTION: Message = message("ExecAction", &[many(1, "command", String)]);

pub(super) static FILE_KEY_SELECTOR: Message = atomic_message(
    "FileKeySelector",
    &[
        one(1, "volumeName", String).required(),
        one(2, "path", String).required(),
        one(3, "key", String).required(),
        pointer(4, "optional", Bool),
    ],
);

pub(super) static GRPC_ACTION: Message =
    message("GRPCAction", &[one(1, "port", Int32).kept(), pointer(2, "service", String)]);

pub(super) static HTTP_GET_ACTION: Message = message(
    "HTTPGetAction",
    &[
        one(1, "path", String),
        one(2, "port", IntOrString).kept(),
        one(3, "host", String),
        one(4, "scheme", String),
        many(5, "httpHeaders", Of(&HTTP_HEADER)),
    ],
);

pub(super) static HTTP_HEADER: Message =
    message("HTTPHeader", &[one(1, "name", String).required(), one(2, "value", String).required()]);

pub(super) static HOST_ALIAS: Message =
    message("HostAlias", &[one(1, "ip", String).required(), many(2, "hostnames", String)]);

pub(super) static LIFECYCLE: Message = message(
    "Lifecycle",
    &[
        pointer(1, "postStart", Of(&LIFECYCLE_HANDLER)),
        pointer(2, "preStop", Of(&LIFECYCLE_HANDLER)),
        pointer(3, "stopSignal", String),
    ],
);

pub(super) static LIFECYCLE_HANDLER: Message = message(
    "LifecycleHandler",
    &[
        pointer(1, "exec", Of(&EXEC_ACTION)),
        pointer(2, "httpGet", Of(&HTTP_GET_ACTION)),
        pointer(3, "tcpSocket", Of(&TCP_SOCKET_ACTION)),
        pointer(4, "sleep", Of(&SLEEP_ACTION)),
    ],
);

pub(super) static POD: Message = message(
    "Pod",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&POD_SPEC)),
        one(3, "status", Of(&pod_status::POD_STATUS)),
    ],
);

pub(super) static POD_AFFINITY: Message = message(
    "PodAffinity",
    &[
        many(1, "requiredDuringSchedulingIgnoredDuringExecution", Of(&POD_AFFINITY_TERM)),
        many(2, "preferredDuringSchedulingIgnoredDuringExecution", Of(&WEIGHTED_POD_AFFINITY_TERM)),
    ],
);

pub(super) static POD_AFFINITY_TERM: Message = message(
    "PodAffinityTerm",
    &[
        pointer(1, "labelSelector", Of(&meta::LABEL_SELECTOR)),
        many(2, "namespaces", String),
        one(3, "topologyKey", String).required(),
        pointer(4, "namespaceSelector", Of(&meta::LABEL_SELECTOR)),
        many(5, "matchLabelKeys", String),
        many(6, "mismatchLabelKeys", String),
    ],
);

pub(super) static POD_ANTI_AFFINITY: Message = message(
    "PodAntiAffinity",
    &[
        many(1, "requiredDuringSchedulingIgnoredDuringExecution", Of(&POD_AFFINITY_TERM)),
        many(2, "preferredDuringSchedulingIgnoredDuringExecution", Of(&WEIGHTED_POD_AFFINITY_TERM)),
    ],
);

pub(super) static POD_DNS_CONFIG: Message = message(
    "PodDNSConfig",
    &[many(1, "nameservers", String), many(2, "searches", String), many(3, "options", Of(&POD_DNS_CONFIG_OPTION))],
);

pub(super) static POD_DNS_CONFIG_OPTION: Message =
    message("PodDNSConfigOption", &[one(1, "name", String), pointer(2, "value", String)]);

pub(super) static POD_OS: Message = message("PodOS", &[one(1, "name", String).required()]);

pub(super) static POD_READINESS_GATE: Message =
    message("PodReadinessGate", &[one(1, "conditionType", String).required()]);

pub(super) static POD_RESOURCE_CLAIM: Message = message(
    "PodResourceClaim",
    &[
        one(1, "name", String).required(),
        pointer(3, "resourceClaimName", String),
        pointer(4, "resourceClaimTemplateName", String),
    ],
);

pub(super) static POD_SCHEDULING_GATE: Message = message("PodSchedulingGate", &[one(1, "name", String).required()]);

pub(super) static POD_SECURITY_CONTEXT: Message = message(
    "PodSecurityContext",
    &[
        pointer(1, "seLinuxOptions", Of(&SE_LINUX_OPTIONS)),
        pointer(2, "runAsUser", Int64),
        pointer(3, "runAsNonRoot", Bool),
        many(4, "supplementalGroups", Int64),
        pointer(5, "fsGroup", Int64),
        pointer(6, "runAsGroup", Int64),
        many(7, "sysctls", Of(&SYSCTL)),
        pointer(8, "windowsOptions", Of(&WINDOWS_SECURITY_CONTEXT_OPTIONS)),
        pointer(9, "fsGroupChangePolicy", String),
        pointer(10, "seccompProfile", Of(&SECCOMP_PROFILE)),
        pointer(11, "appArmorProfile", Of(&APP_ARMOR_PROFILE)),
        pointer(12, "supplementalGroupsPolicy", String),
        pointer(13, "seLinuxChangePolicy", String),
    ],
);

pub(super) static POD_SPEC: Message = message(
    "PodSpec",
    &[
        many(1, "volumes", Of(&volume::VOLUME)).keyed(&["name"]).merge("name").retain_keys(),
        many(2, "containers", Of(&CONTAINER)).keyed(&["name"]).merge("name"),
        one(3, "restartPolicy", String),
        pointer(4, "terminationGracePeriodSeconds", Int64),
        pointer(5, "activeDeadlineSeconds", Int64),
        one(6, "dnsPolicy", String),
        map(7, "nodeSelector", String).atomic(),
        one(8, "serviceAccountName", String),
        one(9, "serviceAccount", String),
        one(10, "nodeName", String),
        one(11, "hostNetwork", Bool),
        one(12, "hostPID", Bool),
        one(13, "hostIPC", Bool),
        pointer(14, "securityContext", Of(&POD_SECURITY_CONTEXT)),
        many(15, "imagePullSecrets", Of(&core::LOCAL_OBJECT_REFERENCE)).keyed(&["name"]).merge("name"),
        one(16, "hostname", String),
        one(17, "subdomain", String),
        pointer(18, "affinity", Of(&AFFINITY)),
        one(19, "schedulerName", String),
        many(20, "initContainers", Of(&CONTAINER)).keyed(&["name"]).merge("name"),
        pointer(21, "automountServiceAccountToken", Bool),
        many(22, "tolerations", Of(&TOLERATION)),
        many(23, "hostAliases", Of(&HOST_ALIAS)).keyed(&["ip"]).merge("ip"),
        one(24, "priorityClassName", String),
        pointer(25, "priority", Int32),
        pointer(26, "dnsConfig", Of(&POD_DNS_CONFIG)),
        pointer(27, "shareProcessNamespace", Bool),
        many(28, "readinessGates", Of(&POD_READINESS_GATE)),
        pointer(29, "runtimeClassName", String),
        pointer(30, "enableServiceLinks", Bool),
        pointer(31, "preemptionPolicy", String),
        map(32, "overhead", Quantity),
        many(33, "topologySpreadConstraints", Of(&TOPOLOGY_SPREAD_CONSTRAINT))
            .keyed(&["topologyKey", "whenUnsatisfiable"])
            .merge("topologyKey"),
        many(34, "ephemeralContainers", Of(&EPHEMERAL_CONTAINER)).keyed(&["name"]).merge("name"),
        pointer(35, "setHostnameAsFQDN", Bool),
        pointer(36, "os", Of(&POD_OS)),
        pointer(37, "hostUsers", Bool),
        many(38, "schedulingGates", Of(&POD_SCHEDULING_GATE)).keyed(&["name"]).merge("name"),
        many(39, "resourceClaims", Of(&POD_RESOURCE_CLAIM)).keyed(&["name"]).merge("name").retain_keys(),
        pointer(40, "resources", Of(&RESOURCE_REQUIREMENTS)),
        pointer(41, "hostnameOverride", String),
    ],
);

pub(super) static POD_TEMPLATE_SPEC: Message =
    message("PodTemplateSpec", &[one(1, "metadata", Of(&meta::OBJECT_META)), one(2, "spec", Of(&POD_SPEC))]);

pub(super) static PREFERRED_SCHEDULING_TERM: Message = message(
    "PreferredSchedulingTerm",
    &[one(1, "weight", Int32).kept(), one(2, "preference", Of(&node::NODE_SELECTOR_TERM))],
);

pub(super) static PROBE: Message = message(
    "Probe",
    &[
        inline(1, Of(&PROBE_HANDLER)),
        one(2, "initialDelaySeconds", Int32),
        one(3, "timeoutSeconds", Int32),
        one(4, "periodSeconds", Int32),
        one(5, "successThreshold", Int32),
        one(6, "failureThreshold", Int32),
        pointer(7, "terminationGracePeriodSeconds", Int64),
    ],
);

pub(super) static PROBE_HANDLER: Message = message(
    "ProbeHandler",
    &[
        pointer(1, "exec", Of(&EXEC_ACTION)),
        pointer(2, "httpGet", Of(&HTTP_GET_ACTION)),
        pointer(3, "tcpSocket", Of(&TCP_SOCKET_ACTION)),
        pointer(4, "grpc", Of(&GRPC_ACTION)),
    ],
);

pub(super) static RESOURCE_CLAIM: Message =
    message("ResourceClaim", &[one(1, "name", String).required(), one(2, "request", String)]);

pub(super) static RESOURCE_REQUIREMENTS: Message = message(
    "ResourceRequirements",
    &[
        map(1, "limits", Quantity),
        map(2, "requests", Quantity),
        many(3, "claims", Of(&RESOURCE_CLAIM)).keyed(&["name"]),
    ],
);

pub(super) static SE_LINUX_OPTIONS: Message = message(
    "SELinuxOptions",
    &[one(1, "user", String), one(2, "role", String), one(3, "type", String), one(4, "level", String)],
);

pub(super) static SECCOMP_PROFILE: Message =
    message("SeccompProfile", &[one(1, "type", String).required(), pointer(2, "localhostProfile", String)]);

pub(super) static SECRET_ENV_SOURCE: Message =
    message("SecretEnvSource", &[inline(1, Of(&core::LOCAL_OBJECT_REFERENCE)), pointer(2, "optional", Bool)]);

pub(super) static SECRET_KEY_SELECTOR: Message = atomic_message(
    "SecretKeySelector",
    &[inline(1, Of(&core::LOCAL_OBJECT_REFERENCE)), one(2, "key", String).required(), pointer(3, "optional", Bool)],
);

pub(super) static SECURITY_CONTEXT: Message = message(
    "SecurityContext",
    &[
        pointer(1, "capabilities", Of(&CAPABILITIES)),
        pointer(2, "privileged", Bool),
        pointer(3, "seLinuxOptions", Of(&SE_LINUX_OPTIONS)),
        pointer(4, "runAsUser", Int64),
        pointer(5, "runAsNonRoot", Bool),
        pointer(6, "readOnlyRootFilesystem", Bool),
        pointer(7, "allowPrivilegeEscalation", Bool),
        pointer(8, "runAsGroup", Int64),
        pointer(9, "procMount", String),
        pointer(10, "windowsOptions", Of(&WINDOWS_SECURITY_CONTEXT_OPTIONS)),
        pointer(11, "seccompProfile", Of(&SECCOMP_PROFILE)),
        pointer(12, "appArmorProfile", Of(&APP_ARMOR_PROFILE)),
    ],
);

pub(super) static SLEEP_ACTION: Message = message("SleepAction", &[one(1, "seconds", Int64).kept()]);

pub(super) static SYSCTL: Message =
    message("Sysctl", &[one(1, "name", String).required(), one(2, "value", String).required()]);

pub(super) static TCP_SOCKET_ACTION: Message =
    message("TCPSocketAction", &[one(1, "port", IntOrString).kept(), one(2, "host", String)]);

pub(super) static TOLERATION: Message = message(
    "Toleration",
    &[
        one(1, "key", String),
        one(2, "operator", String),
        one(3, "value", String),
        one(4, "effect", String),
        pointer(5, "tolerationSeconds", Int64),
    ],
);

pub(super) static TOPOLOGY_SPREAD_CONSTRAINT: Message = message(
    "TopologySpreadConstraint",
    &[
        one(1, "maxSkew", Int32).kept(),
        one(2, "topologyKey", String).required(),
        one(3, "whenUnsatisfiable", String).required(),
        pointer(4, "labelSelector", Of(&meta::LABEL_SELECTOR)),
        pointer(5, "minDomains", Int32),
        pointer(6, "nodeAffinityPolicy", String),
        pointer(7, "nodeTaintsPolicy", String),
        many(8, "matchLabelKeys", String),
    ],
);

pub(super) static VOLUME_DEVICE: Message =
    message("VolumeDevice", &[one(1, "name", String).required(), one(2, "devicePath", String).required()]);

pub(super) static VOLUME_MOUNT: Message = message(
    "VolumeMount",
    &[
        one(1, "name", String).required(),
        one(2, "readOnly", Bool),
        one(3, "mountPath", String).required(),
        one(4, "subPath", String),
        pointer(5, "mountPropagation", String),
        one(6, "subPathExpr", String),
        pointer(7, "recursiveReadOnly", String),
    ],
);

pub(super) static WEIGHTED_POD_AFFINITY_TERM: Message = message(
    "WeightedPodAffinityTerm",
    &[one(1, "weight", Int32).kept(), one(2, "podAffinityTerm", Of(&POD_AFFINITY_TERM))],
);

pub(super) static WINDOWS_SECURITY_CONTEXT_OPTIONS: Message = message(
    "WindowsSecurityContextOptions",
    &[
        pointer(1, "gmsaCredentialSpecName", String),
        pointer(2, "gmsaCredentialSpec", String),
        pointer(3, "runAsUserName", String),
        pointer(4, "hostProcess", Bool),
    ],
);
