//! Nodes that a selector selects: each part is tried once for each node, whatever the page is like.

use std::collections::HashMap;

use weir_scenario::markup::{MarkupKind, MarkupTree};

use super::selector::{Combinator, ComplexSelector, SelectorList, SimpleSelector};

/// Elements of forms.
const INPUTS: [&str; 4] = ["button", "input", "select", "textarea"];

/// For each node, whether a selector selects it.
pub(super) fn selected(tree: &MarkupTree, list: &SelectorList) -> Vec<bool> {
    let mut all = vec![false; tree.count() as usize];
    for complex in list {
        let one = selected_by(tree, complex);
        all.iter_mut().zip(one).for_each(|(all, one)| *all |= one);
    }
    all
}

fn selected_by(tree: &MarkupTree, complex: &ComplexSelector) -> Vec<bool> {
    let count = tree.count() as usize;
    // Before the first part is the root.
    let mut before = vec![false; count];
    before[0] = true;
    for (combinator, parts) in &complex.0 {
        let mut reached = reached(tree, &before, *combinator);
        for part in parts {
            keep(tree, part, &mut reached);
        }
        before = reached;
    }
    before
}

/// Elements that a combinator reaches from nodes.
fn reached(tree: &MarkupTree, from: &[bool], combinator: Combinator) -> Vec<bool> {
    let mut to = vec![false; from.len()];
    // Parents come before their children.
    for parent in 0..tree.count() {
        let children = tree.children(parent);
        let is_within = from[parent as usize] || (combinator == Combinator::Descendant && to[parent as usize]);
        let mut is_later = false;
        for child in children.iter().copied().filter(|child| tree.kind(*child) == MarkupKind::Element) {
            to[child as usize] = match combinator {
                Combinator::Descendant | Combinator::Child => is_within,
                Combinator::Next | Combinator::Later => is_later,
            };
            is_later = from[child as usize] || (combinator == Combinator::Later && is_later);
        }
    }
    to
}

/// Keeps the nodes that match a part.
fn keep(tree: &MarkupTree, part: &SimpleSelector, nodes: &mut [bool]) {
    let keep_those = |nodes: &mut [bool], test: &dyn Fn(u32) -> bool| {
        for (index, node) in nodes.iter_mut().enumerate().filter(|(_, node)| **node) {
            *node = u32::try_from(index).is_ok_and(test);
        }
    };
    match part {
        SimpleSelector::Any => {}
        SimpleSelector::Not(list) => {
            let other = selected(tree, list);
            nodes.iter_mut().zip(other).for_each(|(node, other)| *node &= !other);
        }
        SimpleSelector::Is(list) => {
            let other = selected(tree, list);
            nodes.iter_mut().zip(other).for_each(|(node, other)| *node &= other);
        }
        SimpleSelector::Has(list) => {
            let mut within = selected(tree, list);
            let mut has = vec![false; within.len()];
            // Children come after their parents.
            for index in (1..tree.count()).rev() {
                if let Some(parent) = tree.parent(index).filter(|_| within[index as usize]) {
                    (has[parent as usize], within[parent as usize]) = (true, true);
                }
            }
            nodes.iter_mut().zip(has).for_each(|(node, has)| *node &= has);
        }
        SimpleSelector::Position { step, offset, from_end, of_type } => {
            let positions = positions(tree, *from_end, *of_type);
            keep_those(nodes, &|index| {
                let past = positions[index as usize] - offset;
                if *step == 0 { past == 0 } else { past % step == 0 && past / step >= 0 }
            });
        }
        SimpleSelector::Only { of_type } => {
            let (first, last) = (positions(tree, false, *of_type), positions(tree, true, *of_type));
            keep_those(nodes, &|index| first[index as usize] == 1 && last[index as usize] == 1);
        }
        other => keep_those(nodes, &|index| is_one(tree, other, index)),
    }
}

/// Positions of elements among their siblings, from 1.
fn positions(tree: &MarkupTree, from_end: bool, of_type: bool) -> Vec<i64> {
    let mut positions = vec![0; tree.count() as usize];
    for parent in 0..tree.count() {
        let mut counts: HashMap<&str, i64> = HashMap::new();
        let mut number = |child: u32| {
            if tree.kind(child) == MarkupKind::Element {
                let count = counts.entry(if of_type { tree.name(child) } else { "" }).or_default();
                *count += 1;
                positions[child as usize] = *count;
            }
        };
        let children = tree.children(parent).iter().copied();
        if from_end { children.rev().for_each(&mut number) } else { children.for_each(&mut number) }
    }
    positions
}

/// Whether an element matches a part that needs no other.
fn is_one(tree: &MarkupTree, part: &SimpleSelector, index: u32) -> bool {
    let has = |name: &str| tree.attribute(index, name).is_some();
    let name = tree.name(index);
    match part {
        SimpleSelector::Tag(tag) => name == tag,
        SimpleSelector::Id(id) => tree.attribute(index, "id") == Some(id),
        SimpleSelector::Class(class) => {
            tree.attribute(index, "class").is_some_and(|all| all.split_ascii_whitespace().any(|one| one == class))
        }
        SimpleSelector::Attribute { name, test, ignores_case } => {
            test.passes(tree.attribute(index, name), *ignores_case)
        }
        SimpleSelector::Empty => tree.children(index).iter().all(|child| tree.kind(*child) == MarkupKind::Comment),
        SimpleSelector::Root => tree.parent(index) == Some(0),
        SimpleSelector::Checked => has("checked") || has("selected"),
        SimpleSelector::Selected => has("selected"),
        SimpleSelector::Disabled => INPUTS.contains(&name) && has("disabled"),
        SimpleSelector::Enabled => INPUTS.contains(&name) && !has("disabled"),
        SimpleSelector::Input => INPUTS.contains(&name),
        SimpleSelector::Contains(text) => tree.text_within(index).contains(text),
        _ => true,
    }
}
