//! Walk through a plan: controllers, and the order in which samplers are played.

use super::element::PlanElement;
use super::function::{number, template};
use super::scope::PlanScope;
use super::timer::PlanTimer;
use super::{sampler, thread_group};
use crate::collection::{ImportedScenario, ScenarioRole};
use crate::omission::OmissionKind;
use crate::placeholder;
use crate::session::ImportSession;
use crate::text;

/// Rounds of a loop that are written one after another, at most.
const MAX_ROUNDS: u64 = 10;

/// Steps of a scenario, at most.
const MAX_STEPS: usize = 10_000;

/// Elements that are visited, at most: loops within loops repeat them.
const MAX_VISITS: usize = 200_000;

/// Listeners and other elements that say nothing about requests.
const SILENT_CLASSES: [&str; 9] = [
    "ResultCollector",
    "Summariser",
    "BackendListener",
    "DebugSampler",
    "DebugPostProcessor",
    "ResultSaver",
    "MailerResultCollector",
    "CacheManager",
    "DNSCacheManager",
];

/// Walk through a plan.
#[derive(Debug)]
pub(super) struct PlanWalker<'s> {
    session: &'s mut ImportSession,
    scenarios: Vec<ImportedScenario>,
    visits: usize,
}

/// Settings that hold for the elements of a tree.
#[derive(Clone, Copy)]
struct PlanPlace<'s, 'a> {
    scope: &'s PlanScope<'a>,
    /// Names of the controllers around them.
    tags: &'s [String],
}

impl<'s> PlanWalker<'s> {
    pub(super) fn new(session: &'s mut ImportSession) -> Self {
        Self { session, scenarios: Vec::new(), visits: 0 }
    }

    pub(super) fn finish(self) -> Vec<ImportedScenario> {
        self.scenarios
    }

    /// The plan itself, and test fragments beside it.
    pub(super) fn plan(&mut self, elements: &[PlanElement<'_>]) {
        for element in elements {
            if element.class() == "TestPlan" {
                self.variables(element.part("TestPlan.user_defined_variables"));
                let scope = PlanScope::default();
                self.groups(*element, &scope);
            } else if element.is_enabled() {
                let what = format!("the {} {}", element.class(), element.name());
                self.session.omit(element.line(), OmissionKind::Element, what);
            }
        }
    }

    fn variables(&mut self, arguments: Option<PlanElement<'_>>) {
        for argument in arguments.into_iter().flat_map(|arguments| arguments.arguments()) {
            let name = argument.text("Argument.name").trim();
            if name.is_empty() {
                continue;
            }
            let own = self.session.names.name(name);
            let value = template(argument.text("Argument.value"), argument.line(), self.session);
            match value.as_text() {
                // An empty value decides how a path begins, and is a text of no length.
                Some("") => placeholder::define_as(own, value, self.session),
                Some(text) => self.session.import.define(&own, text, false),
                // ${__P(host,localhost)} has the name of a property that is the variable's value.
                None if text::variables(&value) == [own.clone()] => {}
                None => placeholder::define_as(own, value, self.session),
            }
        }
    }

    /// Thread groups of a plan, with what holds for all of them.
    fn groups(&mut self, plan: PlanElement<'_>, outer: &PlanScope<'_>) {
        let elements: Vec<PlanElement<'_>> = plan.below();
        let mut scope = outer.clone();
        let mut data = None;
        let mut keeps_cookies = false;
        for element in elements.iter().filter(|element| element.is_enabled()) {
            match element.class() {
                "Arguments" => self.variables(Some(*element)),
                "CSVDataSet" if data.is_none() => data = Some(thread_group::data(*element, self.session)),
                "CookieManager" => keeps_cookies |= keeps(*element),
                class if thread_group::role(class).is_some() || SILENT_CLASSES.contains(&class) => {}
                _ if scope.add(*element, self.session) => {}
                class => {
                    let what = format!("the {class} {}", element.name());
                    let kind = if is_script(class) { OmissionKind::Script } else { OmissionKind::Element };
                    self.session.omit(element.line(), kind, what);
                }
            }
        }
        let timers = std::mem::take(&mut scope.timers);
        for group in &elements {
            let Some(role) = thread_group::role(group.class()) else { continue };
            if !group.is_enabled() {
                self.session.note(format!("the thread group {} is switched off", group.name()));
                continue;
            }
            let mut scenario = ImportedScenario { name: group.name().to_owned(), role, ..ImportedScenario::default() };
            scenario.load = thread_group::load(*group, self.session);
            scenario.load.data.clone_from(&data);
            scenario.load.keep_cookies = keeps_cookies;
            if role != ScenarioRole::Users {
                scenario.load = crate::ImportedLoad::default();
            }
            let mut inner = scope.clone();
            inner.timers.clone_from(&timers);
            self.group(*group, inner, &mut scenario);
            self.session.end(&mut scenario);
            self.scenarios.push(scenario);
        }
    }

    fn group<'a>(&mut self, group: PlanElement<'a>, mut scope: PlanScope<'a>, scenario: &mut ImportedScenario) {
        let elements = group.below();
        let enabled: Vec<PlanElement<'a>> = elements.into_iter().filter(PlanElement::is_enabled).collect();
        let timers = enabled.iter().filter(|element| element.class().ends_with("Timer"));
        scope.timers.extend(timers.filter_map(|timer| PlanTimer::read(*timer)));
        // What holds for all steps is the think time of the scenario.
        scenario.load.think = PlanTimer::think(&scope.timers).filter(|_| scenario.role == ScenarioRole::Users);
        scope.timers.clear();
        self.tree(group, PlanPlace { scope: &scope, tags: &[] }, true, scenario);
    }

    /// Elements of a tree; timers of a thread group are its think time and are not read again.
    fn tree<'a>(
        &mut self,
        parent: PlanElement<'a>,
        PlanPlace { scope: outer, tags }: PlanPlace<'_, 'a>,
        is_group: bool,
        scenario: &mut ImportedScenario,
    ) {
        let elements = parent.below();
        let mut scope = outer.clone();
        for element in elements.iter().filter(|element| element.is_enabled()) {
            match element.class() {
                "Arguments" => self.variables(Some(*element)),
                "CSVDataSet" => self.data(*element, scenario),
                "CookieManager" => {
                    scenario.load.keep_cookies |= keeps(*element) && scenario.role == ScenarioRole::Users;
                }
                class if class.ends_with("Timer") && is_group => {
                    let note = PlanTimer::read(*element).map(|timer| timer.note());
                    match note {
                        Some(None) => {}
                        Some(Some(note)) => self.session.omit(element.line(), OmissionKind::Element, note),
                        None => {
                            let what = format!("the {class} {}", element.name());
                            self.session.omit(element.line(), OmissionKind::Element, what);
                        }
                    }
                }
                _ => {
                    scope.add(*element, self.session);
                }
            }
        }
        for element in elements {
            self.element(element, PlanPlace { scope: &scope, tags }, scenario);
        }
    }

    fn data(&mut self, element: PlanElement<'_>, scenario: &mut ImportedScenario) {
        let data = thread_group::data(element, self.session);
        if scenario.load.data.is_none() && scenario.role == ScenarioRole::Users {
            scenario.load.data = Some(data);
        } else {
            self.session.omit(element.line(), OmissionKind::Element, format!("a second file of data, {}", data.file));
        }
    }

    /// A sampler or a controller; other elements have been read with the tree.
    fn element<'a>(&mut self, element: PlanElement<'a>, place: PlanPlace<'_, 'a>, scenario: &mut ImportedScenario) {
        let class = element.class();
        self.visits += 1;
        if scenario.steps.len() >= MAX_STEPS || self.visits > MAX_VISITS {
            return;
        }
        if sampler::is_http(class) {
            let mut own = place.scope.clone();
            let mut others = Vec::new();
            for child in element.below().into_iter().filter(PlanElement::is_enabled) {
                if !own.add(child, self.session) && !SILENT_CLASSES.contains(&child.class()) {
                    others.push(child);
                }
            }
            for child in others {
                let kind = if is_script(child.class()) { OmissionKind::Script } else { OmissionKind::Element };
                let what = format!("the {} {}", child.class(), child.name());
                self.session.omit(child.line(), kind, what);
            }
            let step = sampler::step(element, &own, place.tags, self.session);
            self.session.push(scenario, step);
            return;
        }
        if !element.is_enabled() || SILENT_CLASSES.contains(&class) {
            return;
        }
        if class.ends_with("Controller") || class.ends_with("Control") {
            self.controller(element, place, scenario);
            return;
        }
        let is_config = matches!(class, "Arguments" | "CSVDataSet" | "CookieManager") || class.ends_with("Timer");
        if is_config || PlanScope::default().add(element, &mut ImportSession::default()) {
            return;
        }
        let kind = match class {
            class if is_script(class) => OmissionKind::Script,
            class if class.contains("ampler") || class.ends_with("Action") => OmissionKind::Sampler,
            _ => OmissionKind::Element,
        };
        self.session.omit(element.line(), kind, format!("the {class} {}", element.name()));
    }

    fn controller<'a>(&mut self, element: PlanElement<'a>, place: PlanPlace<'_, 'a>, scenario: &mut ImportedScenario) {
        let class = element.class();
        let tags: Vec<String> = place.tags.iter().cloned().chain([element.name().to_owned()]).collect();
        let inner = PlanPlace { tags: &tags, ..place };
        match class {
            "GenericController" | "RecordingController" => {}
            "TransactionController" => self.session.note(format!("transaction {}", element.name())),
            "LoopController" => {
                let rounds = number(element.text("LoopController.loops")).unwrap_or(1);
                if rounds > MAX_ROUNDS || rounds == 0 {
                    let what = format!("the loop {} of {rounds} rounds; one instead", element.name());
                    self.session.omit(element.line(), OmissionKind::Element, what);
                } else {
                    for _ in 1..rounds {
                        self.tree(element, inner, false, scenario);
                    }
                }
            }
            _ => {
                let condition = ["IfController.condition", "WhileController.condition"].map(|name| element.text(name));
                let condition: String = condition.concat();
                let what = format!("the {class} {} {condition}; its steps are played each time", element.name());
                self.session.omit(element.line(), OmissionKind::Element, what);
            }
        }
        self.tree(element, inner, false, scenario);
    }
}

/// Whether users keep their cookies between iterations.
fn keeps(manager: PlanElement<'_>) -> bool {
    !manager.flag("CookieManager.clearEachIteration")
}

fn is_script(class: &str) -> bool {
    class.contains("JSR223") || class.contains("BeanShell") || class.contains("BSF")
}
