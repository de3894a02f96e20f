//! An SVG of our own: a lane for each processor, coloured by the domain's name; above them what
//! happened to domains. It needs nothing else to be looked at.
//!
//! A point of width is the shortest time that can be seen. Where more than one domain ran in it, it
//! has the colour of the one that ran longest, and the paler the less of it anybody ran; what
//! exactly ran is told to who points there.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::perfetto::sort;
use super::timeline::{Mark, MarkKind, Processor, Timeline};

/// Points to the left of the lanes, and across them.
const LEFT: f64 = 96.0;
const WIDTH: usize = 1400;
const LANE: f64 = 44.0;
const ROW: f64 = 14.0;
/// Rows of labels above the lanes.
const ROWS: usize = 8;
/// Marks in the list below.
const LISTED: usize = 60;
/// Of the domains that ran longest; others are grey.
const COLOURS: [&str; 16] = [
    "#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#bcbd22", "#17becf",
    "#3b5ba5", "#b5852f", "#4f8f6f", "#7a5ea8", "#a5673f", "#c060a0", "#7f8f1f", "#3f8f9f",
];
const OTHER: &str = "#999999";

/// Writes `line`, which `title` describes.
///
/// # Errors
/// Those of `out`.
pub fn write(line: &Timeline, title: &str, out: &mut dyn Write) -> io::Result<()> {
    let picture = Picture::of(line);
    let listed = picture.listed();
    let legend = picture.ranks.len().min(COLOURS.len() + 1).div_ceil(4);
    let below = picture.lanes_end() + 40.0;
    let height = below + 20.0 * (legend + 1) as f64 + ROW * (listed.len() + 3) as f64;
    let width = LEFT + WIDTH as f64 + 24.0;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>"
    )?;
    text(
        out,
        12.0,
        20.0,
        "font-size=\"15\" font-weight=\"bold\"",
        title,
    )?;
    text(out, 12.0, 36.0, "fill=\"#555\"", &picture.summary())?;
    picture.axis(out)?;
    for (number, processor) in line.processors.iter().enumerate() {
        picture.lane(out, number, processor)?;
    }
    picture.gaps(out)?;
    picture.marks(out)?;
    picture.legend(out, below)?;
    picture.list(out, below + 20.0 * (legend + 1) as f64, &listed)?;
    writeln!(out, "</svg>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn text(out: &mut dyn Write, x: f64, y: f64, style: &str, text: &str) -> io::Result<()> {
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>",
        escaped(text)
    )
}

/// How long something took, for people.
fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// How much of a column each domain has, in nanoseconds.
type Column = BTreeMap<u32, u64>;

struct Picture<'a> {
    line: &'a Timeline,
    /// The names of domains, the one that ran longest first, with their times.
    ranks: Vec<(String, u64)>,
    /// The place of each domain among them.
    places: BTreeMap<u32, usize>,
}

impl<'a> Picture<'a> {
    fn of(line: &'a Timeline) -> Self {
        let (mut times, mut names) = (BTreeMap::<String, u64>::new(), BTreeMap::new());
        for run in line.processors.iter().flat_map(|processor| &processor.runs) {
            let name = names.entry(run.domain);
            let name = name.or_insert_with(|| line.domains.name(run.domain));
            *times.entry(name.clone()).or_default() += run.to - run.from;
        }
        let mut ranks: Vec<_> = times.into_iter().collect();
        ranks.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let place = |name: &String| ranks.iter().position(|(other, _)| other == name);
        let places = names
            .iter()
            .filter_map(|(id, name)| Some((*id, place(name)?)));
        let places = places.collect();
        Picture {
            line,
            ranks,
            places,
        }
    }

    fn length(&self) -> u64 {
        (self.line.to - self.line.from).max(1)
    }

    fn lanes_start(&self) -> f64 {
        52.0 + ROW * (ROWS + 1) as f64
    }

    fn lane_at(&self, number: usize) -> f64 {
        self.lanes_start() + LANE * number as f64
    }

    fn lanes_end(&self) -> f64 {
        self.lane_at(self.line.processors.len())
    }

    fn x(&self, at: u64) -> f64 {
        let part = at.saturating_sub(self.line.from) as f64 / self.length() as f64;
        LEFT + part * WIDTH as f64
    }

    fn colour(&self, domain: u32) -> &'static str {
        let place = self.places.get(&domain);
        let colour = place.and_then(|place| COLOURS.get(*place));
        colour.copied().unwrap_or(OTHER)
    }

    fn summary(&self) -> String {
        let line = self.line;
        let lost = match line.lost {
            0 => "no event is lost".into(),
            lost => format!("{lost} EVENTS ARE LOST"),
        };
        format!(
            "{} on {} processors: {} calls, {} deaths, {} restarts, {} repeated requests; {} events, {lost}",
            time(self.length()),
            line.processors.len(),
            line.calls.len(),
            line.marked(MarkKind::Death).count(),
            line.marked(MarkKind::Restart).count(),
            line.marked(MarkKind::Repeat).count(),
            line.events,
        )
    }

    fn axis(&self, out: &mut dyn Write) -> io::Result<()> {
        let step = (0..)
            .map(|power| 10_u64.pow(power))
            .flat_map(|unit| [unit, 2 * unit, 5 * unit]);
        let step = step
            .take(50)
            .find(|step| self.length() / step <= 14)
            .unwrap_or(u64::MAX);
        let (top, end) = (self.lanes_start(), self.lanes_end());
        for tick in 0..=self.length() / step {
            let x = self.x(self.line.from + tick * step);
            writeln!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>",
                end + 4.0
            )?;
            let label = match tick {
                0 => "0".into(),
                _ => time(tick * step),
            };
            text(
                out,
                x,
                end + 16.0,
                "text-anchor=\"middle\" fill=\"#555\"",
                &label,
            )?;
        }
        Ok(())
    }

    /// What ran in each column of a processor.
    fn columns(&self, processor: &Processor) -> Vec<Column> {
        let mut columns = vec![Column::new(); WIDTH];
        for run in &processor.runs {
            let mut from = run.from;
            while from < run.to {
                let at = self.column(from);
                let to = self.begin_of(at + 1).clamp(from + 1, run.to.max(from + 1));
                *columns[at].entry(run.domain).or_default() += to.min(run.to) - from;
                from = to;
            }
        }
        columns
    }

    fn column(&self, at: u64) -> usize {
        let part = u128::from(at - self.line.from) * WIDTH as u128 / u128::from(self.length());
        (part as usize).min(WIDTH - 1)
    }

    fn begin_of(&self, column: usize) -> u64 {
        let part = (u128::from(self.length()) * column as u128).div_ceil(WIDTH as u128);
        self.line.from + part as u64
    }

    fn lane(&self, out: &mut dyn Write, number: usize, processor: &Processor) -> io::Result<()> {
        let y = self.lane_at(number);
        text(out, 8.0, y + 22.0, "", &format!("processor {number}"))?;
        writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{WIDTH}\" height=\"{:.1}\" fill=\"#f4f4f4\"/>",
            y + 2.0,
            LANE - 14.0
        )?;
        let columns = self.columns(processor);
        let looks: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| self.look(at, column))
            .collect();
        let mut from = 0;
        for same in looks.chunk_by(|one, other| one == other) {
            let to = from + same.len();
            if let Some((domain, shade)) = same[0] {
                self.cell(out, y, (from, to), (domain, shade), &columns[from..to])?;
            }
            from = to;
        }
        self.interrupts(out, y, processor)
    }

    /// The domain that ran longest in a column, and in how many tenths of it anybody did.
    fn look(&self, at: usize, column: &Column) -> Option<(u32, u64)> {
        let length = (self.begin_of(at + 1) - self.begin_of(at)).max(1);
        let busy: u64 = column.values().sum();
        let longest = column.iter().max_by_key(|(_, ns)| **ns)?;
        Some((*longest.0, (busy * 10).div_ceil(length).clamp(1, 10)))
    }

    fn cell(
        &self,
        out: &mut dyn Write,
        y: f64,
        (from, to): (usize, usize),
        (domain, shade): (u32, u64),
        columns: &[Column],
    ) -> io::Result<()> {
        let mut sums = Column::new();
        for (id, ns) in columns.iter().flatten() {
            *sums.entry(*id).or_default() += ns;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let begin = self.begin_of(from) - self.line.from;
        let mut title = format!(
            "{} after the begin, for {}",
            time(begin),
            time(self.begin_of(to) - self.begin_of(from))
        );
        for (id, ns) in sums.iter().take(8) {
            title += &format!("\n{}: {}", self.line.domains.label(*id), time(*ns));
        }
        writeln!(
            out,
            "<rect x=\"{:.0}\" y=\"{:.1}\" width=\"{}\" height=\"{:.1}\" fill=\"{}\" fill-opacity=\"{:.2}\"><title>{}</title></rect>",
            LEFT + from as f64,
            y + 2.0,
            to - from,
            LANE - 14.0,
            self.colour(domain),
            0.2 + 0.08 * shade as f64,
            escaped(&title),
        )
    }

    /// A line below the lane: black where interrupts were handled.
    fn interrupts(&self, out: &mut dyn Write, y: f64, processor: &Processor) -> io::Result<()> {
        let mut counts: BTreeMap<usize, BTreeMap<u64, usize>> = BTreeMap::new();
        for (from, _, number) in &processor.interrupts {
            let numbers = counts.entry(self.column(*from)).or_default();
            *numbers.entry(*number).or_default() += 1;
        }
        for (column, numbers) in counts {
            let each = numbers
                .iter()
                .map(|(number, count)| format!("{count} x {}", super::names::interrupt(*number)));
            writeln!(
                out,
                "<rect x=\"{:.0}\" y=\"{:.1}\" width=\"1\" height=\"6\" fill=\"#333\"><title>{}</title></rect>",
                LEFT + column as f64,
                y + LANE - 10.0,
                escaped(&each.collect::<Vec<_>>().join("\n")),
            )?;
        }
        Ok(())
    }

    fn gaps(&self, out: &mut dyn Write) -> io::Result<()> {
        for (from, to, lost) in &self.line.gaps {
            let (x, width) = (self.x(*from), (self.x(*to) - self.x(*from)).max(2.0));
            writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"#000\" fill-opacity=\"0.35\"><title>{lost} events are lost</title></rect>",
                self.lanes_start(),
                self.lanes_end() - self.lanes_start(),
            )?;
        }
        Ok(())
    }

    /// A line through all lanes for each mark, and a label where there is room for one.
    fn marks(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut ends = [f64::MIN; ROWS];
        for mark in &self.line.marks {
            let (x, colour) = (self.x(mark.at), tint(mark.kind));
            let is_quiet = matches!(mark.kind, MarkKind::Start | MarkKind::End);
            let row = ends.iter().position(|end| *end < x);
            let row = row.filter(|_| !is_quiet);
            let (top, end) = match (is_quiet, row) {
                (true, _) => (self.lanes_start() - 6.0, self.lanes_start()),
                (false, Some(row)) => (52.0 + ROW * row as f64, self.lanes_end()),
                (false, None) => (52.0 + ROW * ROWS as f64, self.lanes_end()),
            };
            let title = format!("{}: {}", time(mark.at - self.line.from), mark.text);
            writeln!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{end:.1}\" stroke=\"{colour}\" stroke-dasharray=\"3 2\" class=\"{}\"><title>{}</title></line>",
                sort(mark.kind),
                escaped(&title),
            )?;
            if let Some(row) = row {
                // Letters of this size are about six points wide.
                let width = 6.0 * mark.text.len() as f64;
                let is_right = x + width > LEFT + WIDTH as f64;
                ends[row] = if is_right { f64::MAX } else { x + width + 6.0 };
                let (x, anchor) = if is_right {
                    (x - 3.0, "end")
                } else {
                    (x + 3.0, "start")
                };
                let style = format!("text-anchor=\"{anchor}\" fill=\"{colour}\"");
                text(out, x, 60.0 + ROW * row as f64, &style, &mark.text)?;
            }
        }
        Ok(())
    }

    fn legend(&self, out: &mut dyn Write, y: f64) -> io::Result<()> {
        let all = 100.0 / (self.length() as f64 * self.line.processors.len().max(1) as f64);
        for (at, (name, ns)) in self.ranks.iter().take(COLOURS.len()).enumerate() {
            let (x, y) = (LEFT + 350.0 * (at % 4) as f64, y + 20.0 * (at / 4) as f64);
            writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/>",
                COLOURS[at]
            )?;
            let label = format!("{name}: {} ({:.1} %)", time(*ns), *ns as f64 * all);
            text(out, x + 18.0, y + 10.0, "", &label)?;
        }
        Ok(())
    }

    /// The marks that are written out; with few of the others, those too.
    fn listed(&self) -> Vec<&'a Mark> {
        let marks = self.line.marks.iter();
        let loud = marks.filter(|mark| !matches!(mark.kind, MarkKind::Start | MarkKind::End));
        loud.take(LISTED).collect()
    }

    fn list(&self, out: &mut dyn Write, y: f64, listed: &[&Mark]) -> io::Result<()> {
        for (row, mark) in (0..).zip(listed) {
            let y = y + ROW * f64::from(row);
            let style = format!("fill=\"{}\"", tint(mark.kind));
            let at = mark.at - self.line.from;
            text(
                out,
                LEFT,
                y,
                &style,
                &format!("{}  {}", time(at), mark.text),
            )?;
        }
        Ok(())
    }
}

fn tint(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Death => "#c00000",
        MarkKind::Restart => "#007a1f",
        MarkKind::Repeat => "#b35900",
        MarkKind::Lost => "#000000",
        MarkKind::Start | MarkKind::End => "#888888",
    }
}
