//! Which parts of `self` and `oldSelf` an expression looks at.
//!
//! Binding a whole Cluster to `self` for `has(self.spec.x)` would copy it for every rule; only what the expression
//! can reach is converted.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{EntryExpr, Expr};
use kube_cel::cel::parser::Expression;

/// The part of a value that an expression reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Needs {
    /// Its presence only.
    Presence,
    /// Fields by their escaped names.
    Fields(BTreeMap<String, Needs>),
    All,
}

impl Needs {
    pub(super) const NOTHING: Needs = Needs::Fields(BTreeMap::new());

    /// What `expression` reads of the variable `name`.
    pub(super) fn of(expression: &Expression, name: &str) -> Needs {
        let mut needs = Needs::NOTHING;
        visit(expression, name, &mut needs);
        needs
    }

    pub(super) fn add(&mut self, other: &Needs) {
        match (&mut *self, other) {
            (Needs::All, _) | (_, Needs::Presence) => {}
            (_, Needs::All) => *self = Needs::All,
            (Needs::Presence, Needs::Fields(_)) => *self = other.clone(),
            (Needs::Fields(mine), Needs::Fields(theirs)) => {
                for (name, needs) in theirs {
                    mine.entry(name.clone()).or_insert(Needs::Presence).add(needs);
                }
            }
        }
    }

    /// What is read of the field with this escaped name; `None` when nothing is.
    pub(super) fn under(&self, escaped: &str) -> Option<&Needs> {
        match self {
            Needs::All => Some(&Needs::All),
            Needs::Presence => None,
            Needs::Fields(fields) => fields.get(escaped),
        }
    }

    fn reach(&mut self, path: &[&str], leaf: &Needs) {
        match path.split_first() {
            None => self.add(leaf),
            Some((first, rest)) => {
                if *self == Needs::Presence {
                    *self = Needs::NOTHING;
                }
                if let Needs::Fields(fields) = self {
                    fields.entry((*first).to_owned()).or_insert(Needs::Presence).reach(rest, leaf);
                }
            }
        }
    }
}

fn visit(expression: &Expression, name: &str, needs: &mut Needs) {
    match &expression.expr {
        Expr::Select(_) => {
            let mut path = Vec::new();
            let mut leaf = Needs::All;
            let mut at = expression;
            while let Expr::Select(select) = &at.expr {
                if select.test {
                    leaf = Needs::Presence;
                }
                path.push(select.field.as_str());
                at = &select.operand;
            }
            match &at.expr {
                Expr::Ident(ident) if ident == name => {
                    path.reverse();
                    needs.reach(&path, &leaf);
                }
                _ => visit(at, name, needs),
            }
        }
        Expr::Ident(ident) if ident == name => *needs = Needs::All,
        _ => children(expression, &mut |child| visit(child, name, needs)),
    }
}

pub(super) fn children<'a>(expression: &'a Expression, each: &mut dyn FnMut(&'a Expression)) {
    match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            call.target.iter().for_each(|target| each(target));
            call.args.iter().for_each(each);
        }
        Expr::Comprehension(loops) => {
            [&loops.iter_range, &loops.accu_init, &loops.loop_cond, &loops.loop_step, &loops.result]
                .into_iter()
                .for_each(each);
        }
        Expr::List(list) => list.elements.iter().for_each(each),
        Expr::Select(select) => each(&select.operand),
        Expr::Map(map) => map.entries.iter().for_each(|entry| entry_children(&entry.expr, each)),
        Expr::Struct(message) => message.entries.iter().for_each(|entry| entry_children(&entry.expr, each)),
    }
}

fn entry_children<'a>(entry: &'a EntryExpr, each: &mut dyn FnMut(&'a Expression)) {
    match entry {
        EntryExpr::StructField(field) => each(&field.value),
        EntryExpr::MapEntry(pair) => {
            each(&pair.key);
            each(&pair.value);
        }
    }
}
