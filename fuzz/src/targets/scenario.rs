//! Templates, captures and checks of a `.hurl` file: what compiles is rendered and evaluated without a panic, and a value
//! stays in its place. The file ends at a line `----`; the rest is the body of each response.

use weir_base::Nanos;
use weir_scenario::evaluate::ResponseView;
use weir_scenario::plan::{
    FlowAction, FlowContext, RenderScratch, RequestBytes, ScenarioPlan, ScenarioSettings, ScenarioUser, StepFindings,
};
use weir_scenario::value::Value;

/// Most calls of a flow.
const MAX_CALLS: usize = 50;

crate::target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (text, body) = text.split_once("\n----\n").unwrap_or((&text, ""));
    let Ok(file) = weir_hurl::parse(text) else { return };
    let settings = ScenarioSettings {
        variables: vec![("host".into(), Value::text("http://h")), ("a".into(), Value::text("x\r\ny: z \"&/ü"))],
        ..ScenarioSettings::default()
    };
    let mut files = |name: &str| if name == "f" { Ok(b"file".to_vec()) } else { Err("not there".to_owned()) };
    let Ok(plan) = ScenarioPlan::compile(&file, &settings, &mut files) else { return };
    let (mut origins, mut request, mut findings) =
        (plan.origins.clone(), RequestBytes::default(), StepFindings::default());
    let mut scratch = RenderScratch::default();
    let mut user = ScenarioUser::new(&plan, 1, 1);
    user.prepare(&plan, 1, 1);
    let html: [(&str, &[u8]); 3] =
        [("Content-Type", b"text/html"), ("Location", b"/next"), ("Set-Cookie", body.as_bytes())];
    let mut now = Nanos::ZERO;
    for call in 0..MAX_CALLS {
        let mut context = FlowContext {
            plan: &plan,
            origins: &mut origins,
            request: &mut request,
            findings: &mut findings,
            scratch: &mut scratch,
            unix_s: 1_767_225_600,
        };
        let view = ResponseView {
            version: "1.1",
            status: if call % 3 == 2 { 302 } else { 200 },
            headers: if call % 2 == 0 { &html } else { &html[1..] },
            body: body.as_bytes(),
            raw_body: body.as_bytes(),
            url: "http://h/",
            ..ResponseView::default()
        };
        let action = if call == 0 {
            user.begin(&mut context, now, now)
        } else if !context.request.is_empty() {
            user.response(&mut context, &view, now)
        } else {
            user.woken(&mut context, now)
        };
        match action {
            FlowAction::Send { .. } => {
                let head = request.written.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole head");
                let lines = request.written[..head].split(|byte| *byte == b'\n');
                assert!(lines.clone().count() < 200);
                assert!(!lines.into_iter().any(|line| line.starts_with(b"y: z")), "a value has left its place");
            }
            FlowAction::WaitUntil(until) => {
                now = until.max(now);
                request.clear();
            }
            FlowAction::End { .. } => return,
        }
    }
});
