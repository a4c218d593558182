//! `x-kubernetes-validations`: CEL rules, compiled once when the schema is parsed.

use std::collections::BTreeSet;

use kube_cel::cel::common::ast::Expr;
use kube_cel::cel::parser::{Expression, Parser};
use serde_json::Value;

use super::error::FieldReason;
use super::needs::{Needs, children};

/// Longest expression that is compiled, in bytes.
const LENGTH_LIMIT: usize = 32 << 10;
/// Deepest expression that is compiled; the evaluator recurses.
const DEPTH_LIMIT: usize = 40;
/// Most operators in one expression; each may be one more level of recursion for the parser.
const OPERATOR_LIMIT: usize = 1000;
/// Stack of the parser's thread in bytes: enough for every expression within the limits.
const PARSER_STACK: usize = 64 << 20;

pub(crate) struct Rule {
    pub(super) text: Box<str>,
    pub(super) expression: Expression,
    pub(super) self_needs: Needs,
    pub(super) old_needs: Needs,
    /// Speaks of `oldSelf`: runs only when there is an old value.
    pub(super) transition: bool,
    /// `oldSelf` is an optional, and the rule runs without an old value too.
    pub(super) optional_old_self: bool,
    pub(super) message: Option<Box<str>>,
    pub(super) message_expression: Option<(Box<str>, Expression)>,
    pub(super) reason: Option<FieldReason>,
    /// `fieldPath`, such as `.spec.name`, relative to the node.
    pub(super) field_path: Option<Box<str>>,
}

impl Rule {
    /// Compiles one entry of `x-kubernetes-validations`. Errors are (field of the entry, what is wrong).
    pub(super) fn compile(entry: &Value) -> Result<Rule, (&'static str, String)> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let rule = text("rule").ok_or(("rule", "rule is not specified".to_owned()))?;
        let optional_old_self = entry.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false);
        let expression = compile(rule).map_err(|error| ("rule", error))?;
        let message_expression = match text("messageExpression") {
            Some(text) => Some((text.into(), compile(text).map_err(|error| ("messageExpression", error))?)),
            None => None,
        };
        let message = text("message");
        if message.is_some_and(|message| message.contains('\n')) {
            return Err(("message", "message must not contain line breaks".to_owned()));
        }
        if message.is_none() && rule.contains('\n') && message_expression.is_none() {
            return Err(("message", "message must be specified if rule contains line breaks".to_owned()));
        }
        let reason = match text("reason") {
            None => None,
            Some("FieldValueRequired") => Some(FieldReason::Required),
            Some("FieldValueInvalid") => Some(FieldReason::Invalid),
            Some("FieldValueForbidden") => Some(FieldReason::Forbidden),
            Some("FieldValueDuplicate") => Some(FieldReason::Duplicate),
            Some(other) => return Err(("reason", format!("unsupported reason \"{other}\""))),
        };
        let field_path = text("fieldPath");
        if field_path.is_some_and(|path| !path.starts_with(['.', '['])) {
            return Err(("fieldPath", "fieldPath must be a valid path that begins with \".\" or \"[\"".to_owned()));
        }
        let mut self_needs = Needs::of(&expression, "self");
        let mut old_needs = Needs::of(&expression, "oldSelf");
        let transition = old_needs != Needs::NOTHING;
        if let Some((_, expression)) = &message_expression {
            self_needs.add(&Needs::of(expression, "self"));
            old_needs.add(&Needs::of(expression, "oldSelf"));
        }
        if optional_old_self && !transition {
            return Err(("optionalOldSelf", "may not be set if oldSelf is not used in rule".to_owned()));
        }
        if optional_old_self {
            // The optional is asked for its value by calls, which hide the fields.
            old_needs = Needs::All;
        }
        Ok(Rule {
            text: rule.into(),
            expression,
            self_needs,
            old_needs,
            transition,
            optional_old_self,
            message: message.map(Into::into),
            message_expression,
            reason,
            field_path: field_path.map(Into::into),
        })
    }
}

fn compile(text: &str) -> Result<Expression, String> {
    if text.len() > LENGTH_LIMIT {
        return Err(format!("compilation failed: expression is longer than {LENGTH_LIMIT} bytes"));
    }
    let outline = Outline::of(text);
    if outline.depth > DEPTH_LIMIT || outline.operators > OPERATOR_LIMIT {
        return Err("compilation failed: expression is nested too deep".to_owned());
    }
    if outline.depth <= 6 && outline.operators <= 60 {
        return guarded(text);
    }
    // The parser recurses many times per level and would end the process if it ran out of stack.
    let parser = std::thread::Builder::new().stack_size(PARSER_STACK);
    std::thread::scope(|scope| {
        let thread =
            parser.spawn_scoped(scope, || guarded(text)).map_err(|error| format!("compilation failed: {error}"))?;
        thread.join().unwrap_or_else(|_| Err(GAVE_UP.to_owned()))
    })
}

const GAVE_UP: &str = "compilation failed: the expression is malformed";

/// The parser panics on some malformed expressions.
fn guarded(text: &str) -> Result<Expression, String> {
    std::panic::catch_unwind(|| parse(text)).unwrap_or_else(|_| Err(GAVE_UP.to_owned()))
}

/// Measures of an expression's text, taken without parsing it.
#[derive(Default)]
struct Outline {
    depth: usize,
    /// Characters that occur in operators.
    operators: usize,
}

impl Outline {
    fn of(text: &str) -> Outline {
        let (mut outline, mut depth, mut quote, mut escaped) = (Outline::default(), 0usize, None, false);
        for char in text.chars() {
            match (quote, char) {
                _ if escaped => escaped = false,
                (Some(_), '\\') => escaped = true,
                (Some(open), close) if open == close => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(char),
                (None, '(' | '[' | '{') => {
                    depth += 1;
                    outline.depth = outline.depth.max(depth);
                    outline.operators += 1;
                }
                (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
                (None, '!' | '-' | '+' | '*' | '/' | '%' | '?' | ':' | '.' | '<' | '>' | '=' | '&' | '|') => {
                    outline.operators += 1
                }
                _ => {}
            }
        }
        outline
    }
}

fn parse(text: &str) -> Result<Expression, String> {
    let expression = Parser::new().enable_optional_syntax(true).parse(text).map_err(|errors| {
        format!("compilation failed: {}", errors.to_string().lines().collect::<Vec<_>>().join(" "))
    })?;
    let mut scope = vec!["self", "oldSelf"];
    let mut unknown = BTreeSet::new();
    check(&expression, &mut scope, &mut unknown, 0)?;
    match unknown.first() {
        None => Ok(expression),
        Some(name) => Err(format!("compilation failed: undeclared reference to '{name}' (in container '')")),
    }
}

/// Collects variables and functions that nothing provides, so that a CRD is refused rather than every object of it.
fn check<'a>(
    expression: &'a Expression,
    scope: &mut Vec<&'a str>,
    unknown: &mut BTreeSet<&'a str>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEPTH_LIMIT {
        return Err(format!("compilation failed: expression is nested deeper than {DEPTH_LIMIT}"));
    }
    match &expression.expr {
        Expr::Ident(name) => {
            if !name.starts_with('@') && !scope.contains(&name.as_str()) && !TYPES.contains(&name.as_str()) {
                unknown.insert(name);
            }
            Ok(())
        }
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            let named = name.starts_with(|first: char| first.is_ascii_alphabetic());
            let mut target = call.target.as_deref();
            if let Some(Expr::Ident(library)) = target.map(|target| &target.expr)
                && LIBRARIES.contains(&library.as_str())
                && !scope.contains(&library.as_str())
            {
                target = None;
            }
            let last = name.rsplit('.').next().unwrap_or(name);
            if named && !FUNCTIONS.contains(&last) {
                unknown.insert(name);
            }
            if let Some(target) = target {
                check(target, scope, unknown, depth + 1)?;
            }
            call.args.iter().try_for_each(|argument| check(argument, scope, unknown, depth + 1))
        }
        Expr::Comprehension(loops) => {
            check(&loops.iter_range, scope, unknown, depth + 1)?;
            check(&loops.accu_init, scope, unknown, depth + 1)?;
            let outer = scope.len();
            scope.push(&loops.accu_var);
            scope.push(&loops.iter_var);
            scope.extend(loops.iter_var2.as_deref());
            for part in [&loops.loop_cond, &loops.loop_step, &loops.result] {
                check(part, scope, unknown, depth + 1)?;
            }
            scope.truncate(outer);
            Ok(())
        }
        _ => {
            let mut result = Ok(());
            children(expression, &mut |child| {
                if result.is_ok() {
                    result = check(child, scope, unknown, depth + 1);
                }
            });
            result
        }
    }
}

/// Type names that may stand as values.
pub(super) const TYPES: &[&str] = &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type"];

/// First part of the names of library functions.
const LIBRARIES: &[&str] =
    &["math", "sets", "lists", "strings", "base64", "format", "ip", "cidr", "jsonpatch", "optional", "url", "quantity"];

/// Functions of the evaluator, without the names of their libraries.
const FUNCTIONS: &[&str] = &[
    "abs",
    "add",
    "asApproximateFloat",
    "asInteger",
    "bitAnd",
    "bitNot",
    "bitOr",
    "bitShiftLeft",
    "bitShiftRight",
    "bitXor",
    "byte",
    "bytes",
    "ceil",
    "charAt",
    "cidr",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "date",
    "datetime",
    "decode",
    "distinct",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "double",
    "duration",
    "dyn",
    "encode",
    "endsWith",
    "equivalent",
    "escapeKey",
    "family",
    "find",
    "findAll",
    "first",
    "flatten",
    "floor",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "greatest",
    "hasValue",
    "indexOf",
    "int",
    "intersects",
    "ip",
    "isCIDR",
    "isCIDRv4",
    "isCIDRv6",
    "isCanonical",
    "isFinite",
    "isGlobalUnicast",
    "isGreaterThan",
    "isIP",
    "isIPv4",
    "isIPv6",
    "isInf",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isNaN",
    "isQuantity",
    "isSemver",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "labelValue",
    "last",
    "lastIndexOf",
    "least",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "max",
    "min",
    "minor",
    "named",
    "none",
    "of",
    "ofNonZeroValue",
    "or",
    "orValue",
    "patch",
    "prefixLength",
    "qualifiedName",
    "quantity",
    "quote",
    "range",
    "replace",
    "reverse",
    "round",
    "semver",
    "sign",
    "size",
    "slice",
    "sort",
    "split",
    "sqrt",
    "startsWith",
    "string",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "trunc",
    "type",
    "uint",
    "upperAscii",
    "uri",
    "url",
    "uuid",
    "validate",
    "value",
];
