//! Time lines of events that were made up.

use abi::events::*;
use interfaces::INTERFACES;

use super::*;

fn bytes(text: &str) -> [u8; 32] {
    std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(0))
}

/// Two processors, thread 7 in `file` calls `disk`, which dies; its next instance is asked again.
fn crash() -> Recording {
    let mut events = Vec::new();
    let mut add = |time, kind, small, domain, other, value, text: &str| {
        events.push(Event {
            time,
            kind,
            processor: 1,
            small,
            stack: 0x70,
            domain,
            other,
            value,
            bytes: bytes(text),
        });
    };
    let block = INTERFACES.iter().find(|(_, name, _)| *name == "Block");
    let (block, _, methods) = block.expect("there is one");
    let geometry = methods.iter().position(|name| *name == "geometry");
    let geometry = geometry.expect("it has one") as u32;
    add(100, STATE, 1, 0, 3, 0, "file");
    add(110, STATE, 1, 0, 4, 0, "disk");
    add(200, RUNS, 0, 3, 0, 7, "");
    add(300, CALL, geometry, 3, 4, *block, "");
    add(320, INTERRUPT, 0, 4, 0, 0xf0, "");
    add(330, INTERRUPT_OVER, 0, 4, 0, 0xf0, "");
    add(400, STATE, 2 | 1 << 8, 4, 4, 0, "disk");
    add(420, STATE, 2 | 1 << 8, 0, 4, 0, "disk");
    add(500, RETURN, 1, 3, 0, 300, "");
    add(510, LEAVES, 0, 3, 0, 3, "");
    add(600, STATE, 0, 0, 5, 0, "disk");
    add(650, READY, 0, 0, 0, 7, "");
    add(700, RUNS, 0, 3, 0, 7, "");
    add(800, CALL, geometry, 3, 5, *block, "");
    add(900, RETURN, 0, 3, 0, 800, "");
    add(1000, LEAVES, 0, 3, 0, 4, "");
    Recording {
        events,
        gaps: Vec::new(),
    }
}

/// The event of a call of this method by thread 7 in `file`.
fn asked(time: u64, interface: &str, method: &str, callee: u32) -> Event {
    let found = INTERFACES.iter().find(|(_, name, _)| *name == interface);
    let (number, _, methods) = found.expect("there is one");
    let place = methods.iter().position(|name| *name == method);
    Event {
        time,
        kind: CALL,
        processor: 1,
        small: place.expect("it has one") as u32,
        stack: 0x70,
        domain: 3,
        other: callee,
        value: *number,
        bytes: bytes(""),
    }
}

#[test]
fn who_opens_the_queue_of_the_next_instance_hands_on_what_the_one_before_had() {
    let mut recording = crash();
    // Before the death nothing is handed on, and behind it what is submitted first.
    let more = [
        (250, "Block", "open", 4),
        (270, "BlockQueue", "submit", 4),
        (710, "Block", "open", 5),
        (730, "BlockQueue", "submit", 5),
        (750, "BlockQueue", "submit", 5),
    ];
    for (time, interface, method, callee) in more {
        let call = asked(time, interface, method, callee);
        let mut back = call.clone();
        (back.kind, back.time, back.small, back.value) = (RETURN, time + 5, 0, time);
        recording.events.extend([call, back]);
    }
    let line = Timeline::of(&recording);
    let again = |call: &&Call| call.method == "BlockQueue.submit" && call.repeats;
    let times: Vec<_> = line.calls.iter().filter(again).map(|it| it.from).collect();
    assert_eq!(times, [730]);
    let text = "file asks disk again: BlockQueue.submit";
    assert!(line.marks.iter().any(|mark| mark.text == text));
}

fn texts(line: &Timeline) -> [String; 3] {
    WRITERS.map(|write| {
        let mut out = Vec::new();
        write(line, "a <line> & more", &mut out).expect("memory is there");
        String::from_utf8(out).expect("it is text")
    })
}

#[test]
fn a_crash_a_restart_and_a_repeated_request_are_seen() {
    let line = Timeline::of(&crash());
    let kinds: Vec<_> = line.marks.iter().map(|mark| (mark.at, mark.kind)).collect();
    let expected = [
        (400, MarkKind::Death),
        (600, MarkKind::Restart),
        (800, MarkKind::Repeat),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(line.marks[0].text, "disk 4 crashes: Panic");
    assert_eq!(line.marks[2].text, "file asks disk again: Block.geometry");
    let calls: Vec<_> = line
        .calls
        .iter()
        .map(|call| (call.from, call.to, call.outcome, call.repeats))
        .collect();
    let expected = [
        (300, 500, Outcome::Failed, false),
        (800, 900, Outcome::Returned, true),
    ];
    assert_eq!(calls, expected);
    let runs: Vec<_> = line.processors[1]
        .runs
        .iter()
        .map(|run| (run.from, run.to, run.domain))
        .collect();
    let expected = [
        (200, 300, 3),
        (300, 500, 4),
        (500, 510, 3),
        (700, 800, 3),
        (800, 900, 5),
        (900, 1000, 3),
    ];
    assert_eq!(runs, expected);
    assert_eq!(line.processors[1].interrupts, [(320, 330, 0xf0)]);
    assert_eq!(line.threads[&7].pauses.len(), 2);
}

#[test]
fn what_is_written_keeps_to_its_formats() {
    let [events, profile, svg] = texts(&Timeline::of(&crash()));
    let found = check::trace_events(&events).expect("it is right");
    assert_eq!(found.intervals["call"], 2);
    assert_eq!(found.moments["crash"], ["disk 4 crashes: Panic"]);
    assert_eq!(found.lost, 0);
    let profiles = check::speedscope(&profile).expect("it is right");
    // The first instance is not cleared away yet when the second begins.
    assert_eq!(
        profiles,
        ["processor 1", "thread 7 of file, in disk 4", "disk", "disk"]
    );
    let seen = check::picture(&svg).expect("it is right");
    assert!(
        seen.contains(&"a &lt;line&gt; &amp; more".to_string()),
        "{seen:?}"
    );
    assert!(
        seen.contains(&"disk 4 crashes: Panic".to_string()),
        "{seen:?}"
    );
}

#[test]
fn a_thread_that_leaves_a_dead_caller_closes_its_calls() {
    let mut recording = crash();
    // The call of `file` is over while one that `disk` made is not.
    let mut inner = recording.events[3].clone();
    (inner.time, inner.domain, inner.other) = (350, 4, 3);
    recording.events.insert(6, inner);
    let line = Timeline::of(&recording);
    let inner = line
        .calls
        .iter()
        .find(|call| call.from == 350)
        .expect("it was made");
    assert_eq!((inner.to, inner.outcome), (500, Outcome::Left));
    check::trace_events(&texts(&line)[0]).expect("it is right");
}

#[test]
fn lost_events_are_shown_everywhere_and_break_nothing() {
    let mut recording = crash();
    // The failed return, and what came next.
    recording.events.drain(8..12);
    recording.gaps.push(Gap { after: 8, lost: 4 });
    let line = Timeline::of(&recording);
    assert_eq!(
        (line.lost, line.gaps.as_slice()),
        (4, [(420, 700, 4)].as_slice())
    );
    assert_eq!(line.calls[0].outcome, Outcome::Unknown);
    let [events, profile, svg] = texts(&line);
    let found = check::trace_events(&events).expect("it is right");
    assert_eq!((found.lost, found.moments["lost"].len()), (4, 1));
    assert!(events.contains("threads (4 events are lost)"));
    let profiles = check::speedscope(&profile).expect("it is right");
    assert!(
        profiles.contains(&"lost events".to_string()),
        "{profiles:?}"
    );
    assert!(profile.contains("(4 events are lost)"));
    let seen = check::picture(&svg).expect("it is right");
    assert!(
        seen.iter().any(|text| text.contains("4 EVENTS ARE LOST")),
        "{seen:?}"
    );
}

#[test]
fn calls_of_one_domain_are_listed() {
    let line = Timeline::of(&crash());
    let text = listing::of(&line, "disk").expect("it was called");
    let expected = "    0.000000 thread 7: file -> disk 4: Block.geometry() = failed <0.000000>\n    \
        0.000001 thread 7: file -> disk 5: Block.geometry() (again) = returned <0.000000>\n";
    assert_eq!(text, expected);
    let error = listing::of(&line, "nobody").expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "no call from or to `nobody`; there are calls of disk, file"
    );
}

/// A thread that was moved while it wrote an event may have named the processor where it was not.
#[test]
fn a_call_is_where_the_scheduler_says() {
    let mut recording = crash();
    let call = recording.events.iter_mut().find(|event| event.kind == CALL);
    call.expect("there is one").processor = 0;
    let line = Timeline::of(&recording);
    assert!(line.processors[0].runs.is_empty());
    assert_eq!(
        line.processors[1].runs,
        Timeline::of(&crash()).processors[1].runs
    );
}

/// Every part of a recording is a time line, wherever it begins and ends and whatever is missing.
#[test]
fn any_part_of_a_recording_can_be_written() {
    let all = crash().events;
    for from in 0..all.len() {
        for to in from..=all.len() {
            for missing in from..to {
                let mut events = all[from..to].to_vec();
                events.remove(missing - from);
                let gap = Gap {
                    after: missing - from,
                    lost: 1,
                };
                let line = Timeline::of(&Recording {
                    events,
                    gaps: vec![gap],
                });
                assert_eq!(line.gaps.iter().map(|gap| gap.2).sum::<u64>(), 1);
                let [events, profile, svg] = texts(&line);
                check::trace_events(&events).expect("it is right");
                check::speedscope(&profile).expect("it is right");
                check::picture(&svg).expect("it is right");
            }
        }
    }
}

#[test]
fn the_check_finds_what_is_wrong() {
    let [events, profile, svg] = texts(&Timeline::of(&crash()));
    for (old, new) in [
        ("\"X\"", "\"B\""),
        ("thread_name", "other_name"),
        (
            "\"pid\":2,\"tid\":7,\"ts\":0.7",
            "\"pid\":2,\"tid\":8,\"ts\":0.7",
        ),
        ("\"dur\":0.01", "\"dur\":0.5"),
    ] {
        assert!(events.contains(old), "{old}");
        let error = check::trace_events(&events.replace(old, new));
        assert!(error.is_err(), "{old}");
    }
    for (old, new) in [
        ("\"C\"", "\"O\""),
        ("\"at\":100", "\"at\":901"),
        ("evented", "sampled"),
    ] {
        assert!(profile.contains(old), "{old}");
        assert!(
            check::speedscope(&profile.replace(old, new)).is_err(),
            "{old}"
        );
    }
    for (old, new) in [
        ("</title>", ""),
        ("</svg>", ""),
        ("<rect ", "<image href=\"x\" "),
    ] {
        assert!(check::picture(&svg.replace(old, new)).is_err(), "{old}");
    }
}
