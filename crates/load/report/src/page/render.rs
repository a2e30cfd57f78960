//! A page as one HTML file.
//!
//! [`Html`] escapes all words from outside. Were a mistake made all the same, the page's own policy (CSP) runs no
//! script but the one whose digest it names, and lets nothing be fetched or sent.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};

use super::html::Html;
use super::{
    BarChart, Block, Chart, KeyFigure, PageTable, ReportPage, Section, TableCell, Tone, ValueInterval, VerdictPoint,
    chart, svg,
};
use weir_page::{REPORT_SCRIPT, STYLE};

/// The page as a file.
pub fn render(page: &ReportPage) -> String {
    let mut html = Html::default();
    head(&mut html, page);
    html.raw("<body>\n<header>\n<div class=\"top\"><p class=\"brand\">weir</p>");
    html.raw(THEME_SWITCH).raw("</div>\n<h1>").text(&page.title).raw("</h1>\n<ul class=\"about\">");
    for fact in &page.about {
        html.raw("<li>").text(fact).raw("</li>");
    }
    html.raw("</ul>\n</header>\n<main>\n");
    verdict(&mut html, page);
    write_key_figures(&mut html, &page.key_figures);
    let mut charts = Vec::new();
    for part in &page.sections {
        section(&mut html, part, &mut charts);
    }
    html.raw("</main>\n<script type=\"application/json\" id=\"charts\">").json(&chart::to_json(&charts));
    html.raw("</script>\n<script>").raw(REPORT_SCRIPT).raw("</script>\n</body>\n</html>\n");
    html.into_string()
}

/// Without a script: the style depends on which one is chosen.
const THEME_SWITCH: &str = "<fieldset class=\"switch\"><legend>Colours</legend>\
<label><input type=\"radio\" name=\"colours\" id=\"auto\" checked><span>auto</span></label>\
<label><input type=\"radio\" name=\"colours\" id=\"light\"><span>light</span></label>\
<label><input type=\"radio\" name=\"colours\" id=\"dark\"><span>dark</span></label></fieldset>";

fn head(html: &mut Html, page: &ReportPage) {
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; ");
    html.raw("form-action 'none'; img-src data:; style-src 'sha256-").text(&sha256_base64(STYLE));
    html.raw("'; script-src 'sha256-").text(&sha256_base64(REPORT_SCRIPT)).raw("'\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"referrer\" content=\"no-referrer\">\n<title>").text(&page.title);
    // Without an icon of its own a page that comes from a server asks for one.
    html.raw(" · weir</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>").raw(STYLE).raw("</style>\n</head>\n");
}

fn sha256_base64(text: &str) -> String {
    BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes()))
}

fn verdict(html: &mut Html, page: &ReportPage) {
    let verdict = &page.verdict;
    html.raw("<section class=\"verdict ").raw(tone(verdict.tone)).raw("\" aria-labelledby=\"verdict\">\n");
    html.raw("<h2 id=\"verdict\">").text(&verdict.headline).raw("</h2>\n");
    if !verdict.sentence.is_empty() {
        html.raw("<p>").text(&verdict.sentence).raw("</p>\n");
    }
    if !verdict.points.is_empty() {
        html.raw("<ul>\n");
        for VerdictPoint { tone, text } in &verdict.points {
            html.raw("<li>");
            mark(html, *tone);
            html.text(text).raw("</li>\n");
        }
        html.raw("</ul>\n");
    }
    html.raw("</section>\n");
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Doubt => "doubt",
    }
}

fn mark(html: &mut Html, tone: Tone) {
    html.raw(match tone {
        Tone::Plain => "<span class=\"mark plain\" aria-hidden=\"true\">·</span>",
        Tone::Good => "<span class=\"mark good\" role=\"img\" aria-label=\"good\">✓</span>",
        Tone::Bad => "<span class=\"mark bad\" role=\"img\" aria-label=\"bad\">✗</span>",
        Tone::Doubt => "<span class=\"mark doubt\" role=\"img\" aria-label=\"doubtful\">!</span>",
    });
}

fn write_key_figures(html: &mut Html, figures: &[KeyFigure]) {
    if figures.is_empty() {
        return;
    }
    html.raw("<dl class=\"figures\">\n");
    for figure in figures {
        html.raw("<div class=\"")
            .raw(tone(figure.tone))
            .raw("\"><dt>")
            .text(&figure.name)
            .raw("</dt><dd><data value=\"");
        html.number(figure.value).raw("\">").text(&figure.unit.format(figure.value)).raw("</data>");
        if !figure.note.is_empty() {
            html.raw("<span>").text(&figure.note).raw("</span>");
        }
        html.raw("</dd></div>\n");
    }
    html.raw("</dl>\n");
}

fn section<'a>(html: &mut Html, section: &'a Section, charts: &mut Vec<&'a Chart>) {
    html.raw("<section>\n<h2>").text(&section.title).raw("</h2>\n");
    let mut side_by_side = false;
    for block in &section.blocks {
        let plot = matches!(block, Block::Chart(_) | Block::Bars(_));
        match (side_by_side, plot) {
            (false, true) => drop(html.raw("<div class=\"plots\">\n")),
            (true, false) => drop(html.raw("</div>\n")),
            _ => {}
        }
        side_by_side = plot;
        match block {
            Block::Text(words) => drop(html.raw("<p>").text(words).raw("</p>\n")),
            Block::Chart(chart) => {
                write_chart(html, chart, charts.len());
                charts.push(chart);
            }
            Block::Bars(all) => bars(html, all),
            Block::Table(rows) => table(html, rows),
            Block::Facts(facts) => {
                html.raw("<dl class=\"facts\">\n");
                for (name, words) in facts {
                    html.raw("<div><dt>").text(name).raw("</dt><dd>").text(words).raw("</dd></div>\n");
                }
                html.raw("</dl>\n");
            }
            Block::Command(line) => drop(html.raw("<pre><code>").text(line).raw("</code></pre>\n")),
        }
    }
    html.raw(if side_by_side { "</div>\n</section>\n" } else { "</section>\n" });
}

fn caption(html: &mut Html, title: &str, note: &str) {
    html.raw("<figcaption><h3>").text(title).raw("</h3>");
    if !note.is_empty() {
        html.raw("<p>").text(note).raw("</p>");
    }
    html.raw("</figcaption>\n");
}

/// A chart as it is without the script, which draws it anew.
fn write_chart(html: &mut Html, chart: &Chart, index: usize) {
    html.raw("<figure class=\"chart\" data-chart=\"").number(index as f64).raw("\">\n");
    caption(html, &chart.title, &chart.note);
    html.raw("<ul class=\"legend\">");
    for (line, hue) in chart.lines.iter().zip(chart.hues()) {
        html.raw(if line.hidden { "<li class=\"off h" } else { "<li class=\"h" })
            .text(&hue)
            .raw("\"><i></i>")
            .text(&line.name)
            .raw("</li>");
    }
    if let Some(cells) = &chart.cells {
        html.raw("<li class=\"ramp\"><i></i>").text(&cells.name).raw("</li>");
    }
    html.raw("</ul>\n<div class=\"plot\">");
    svg::draw(html, chart);
    html.raw("</div>\n</figure>\n");
}

fn bars(html: &mut Html, bars: &BarChart) {
    let intervals = bars.bars.iter().any(|bar| bar.interval.is_some());
    html.raw(if intervals { "<figure class=\"bars wide\">\n" } else { "<figure class=\"bars\">\n" });
    caption(html, &bars.title, &bars.note);
    html.raw("<table>\n<thead><tr><th scope=\"col\">").text(&bars.columns[0]);
    html.raw("</th><th scope=\"col\" class=\"n\">")
        .text(&bars.columns[1])
        .raw("</th><td></td></tr></thead>\n<tbody>\n");
    let (most, notes) = (bars.max_value(), bars.bars.iter().any(|bar| !bar.note.is_empty()));
    for bar in &bars.bars {
        html.raw("<tr><th scope=\"row\">");
        if bar.untrusted {
            mark(html, Tone::Doubt);
        }
        html.text(&bar.name).raw("</th><td class=\"n\">");
        html.text(&bars.unit.format(bar.value));
        if let Some(ValueInterval { low, high }) = bar.interval {
            let ends = format!(" [{} \u{2013} {}]", bars.unit.format(low), bars.unit.format(high));
            html.raw("<small>").text(&ends).raw("</small>");
        }
        if notes {
            html.raw("<small>").text(&bar.note).raw("</small>");
        }
        html.raw("</td><td class=\"bar\">");
        svg::bar(html, bar, most);
        html.raw("</td></tr>\n");
    }
    html.raw("</tbody>\n</table>\n</figure>\n");
}

fn table(html: &mut Html, table: &PageTable) {
    if table.folded {
        html.raw("<details><summary>").text(&table.title).raw("</summary>\n");
    }
    // A table that is wider than a phone is moved within its frame, by keyboard as well.
    html.raw("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"").text(&table.title);
    html.raw("\"><table>\n");
    if !table.folded {
        html.raw("<caption>").text(&table.title).raw("</caption>\n");
    }
    html.raw("<thead><tr>");
    for (i, name) in table.columns.iter().enumerate() {
        if name.is_empty() {
            html.raw("<td></td>"); // a heading would have to say something
            continue;
        }
        html.raw(if table.is_number(i) { "<th scope=\"col\" class=\"n\">" } else { "<th scope=\"col\">" });
        html.text(name).raw("</th>");
    }
    html.raw("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        html.raw("<tr>");
        for (i, cell) in row.iter().enumerate() {
            html.raw(match (i, table.is_number(i)) {
                (0, false) => "<th scope=\"row\">",
                (0, true) => "<th scope=\"row\" class=\"n\">",
                (_, true) => "<td class=\"n\">",
                (_, false) => "<td>",
            });
            match cell {
                TableCell::Text(words) => drop(html.text(words)),
                TableCell::Number(value, unit) => drop(html.text(&unit.format(*value))),
                TableCell::Toned(tone, words) => {
                    mark(html, *tone);
                    html.text(words);
                }
                TableCell::Empty => {}
            }
            html.raw(if i == 0 { "</th>" } else { "</td>" });
        }
        html.raw("</tr>\n");
    }
    html.raw("</tbody>\n</table></div>\n");
    if table.folded {
        html.raw("</details>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BarRow, ChartAxis, ChartLevel, ChartLine, ChartSpan, PageVerdict, ValueUnit, of_run};
    use super::*;
    use crate::tests::fixtures;

    const EVIL: &str =
        "</script><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' <!-- \u{1b}[2J\u{202e}&";

    /// A page on which all words are hostile.
    fn hostile() -> ReportPage {
        let words = || EVIL.to_owned();
        let axis = || ChartAxis::new(EVIL, ValueUnit::Other(words()));
        let mut chart =
            Chart::new(EVIL, axis(), axis()).line(ChartLine::new(EVIL, [(0.0, Some(1.0)), (1.0, Some(2.0))]));
        chart.note = words();
        chart.group = words();
        chart.spans = vec![ChartSpan { from: 0.0, to: 1.0, name: words() }];
        chart.levels = vec![ChartLevel { at: 1.0, name: words() }];
        let bar = BarRow { note: words(), ..BarRow::new(EVIL, 1.0) };
        let columns = [words(), words()];
        let bars = BarChart { title: words(), note: words(), columns, unit: ValueUnit::Count, bars: vec![bar] };
        let table =
            PageTable::new(EVIL, &[EVIL, EVIL]).row([TableCell::text(EVIL), TableCell::Toned(Tone::Bad, words())]);
        let folded = PageTable { folded: true, ..table.clone() };
        let facts = Block::Facts(vec![(words(), words())]);
        let blocks = vec![Block::Text(words()), Block::Chart(chart), Block::Bars(bars), Block::Table(table)];
        let more = vec![Block::Table(folded), facts, Block::Command(words())];
        ReportPage {
            title: words(),
            about: vec![words()],
            verdict: PageVerdict {
                tone: Tone::Bad,
                headline: words(),
                sentence: words(),
                points: vec![VerdictPoint::new(Tone::Good, EVIL)],
            },
            key_figures: vec![KeyFigure::new(EVIL, 1.0, ValueUnit::Other(words())).with_note(EVIL)],
            sections: vec![Section::new(EVIL, [blocks, more].concat())],
        }
    }

    /// Page without the data of the charts, and these data.
    fn parts(html: &str) -> (String, String) {
        let (before, rest) = html.split_once("id=\"charts\">").expect("the data");
        let (json, after) = rest.split_once("</script>").expect("its end");
        (format!("{before}</script>{after}"), json.to_owned())
    }

    #[test]
    fn no_word_from_outside_becomes_markup() {
        let html = render(&hostile());
        let (markup, json) = parts(&html);
        let own = parts(&render(&ReportPage::default())).0;
        for what in ["<script", "</script", "<!--", "<img", "\" onload", "\u{1b}", "\u{202e}"] {
            assert_eq!(markup.matches(what).count(), own.matches(what).count(), "{what}");
        }
        assert!(!json.contains('<'), "{json}");
        let data: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(data["charts"][0]["title"], EVIL, "the script reads what was given");
    }

    #[test]
    fn the_policy_names_the_script_and_the_style_that_are_there_and_nothing_to_fetch() {
        let html = render(&hostile());
        for (tag, end, directive) in
            [("<style>", "</style>", "style-src"), ("</script>\n<script>", "</script>\n</body>", "script-src")]
        {
            let start = html.find(tag).expect(tag) + tag.len();
            let inside = &html[start..start + html[start..].find(end).expect(end)];
            assert!(html.contains(&format!("{directive} 'sha256-{}'", sha256_base64(inside))), "{directive}");
        }
        assert!(html.contains("default-src 'none'") && !html.contains("unsafe"));
        assert!(!html.contains("style=\""), "the policy forbids styles in attributes");
        let addresses = html.matches("://").count() - html.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(addresses, 0, "nothing that could be asked for");
    }

    #[test]
    fn every_run_has_a_page_and_the_same_after_a_stay_in_a_file() {
        for run in fixtures::all() {
            let html = render(&of_run(&run));
            assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
            let back = weir_measure::Run::from_json(&run.to_json()).expect("own JSON");
            assert_eq!(render(&of_run(&back)), html);
        }
    }

    #[test]
    fn a_page_of_ten_thousand_points_is_smaller_than_a_megabyte() {
        let mut run = fixtures::open();
        let point = run.series[1].clone();
        let at = |i: u32| weir_measure::series::SeriesPoint {
            t_s: f64::from(i),
            p50_ms: Some(20.0 + f64::from(i % 991) / 7.0),
            p99_ms: Some(90.0 + f64::from(i % 997) / 7.0),
            max_ms: Some(300.0 + f64::from(i % 983) / 7.0),
            ok: u64::from(i % 1013),
            ..point.clone()
        };
        run.series = (0..10_000).map(at).collect();
        assert!(render(&of_run(&run)).len() < 1_000_000);
    }
}
