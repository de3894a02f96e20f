//! `trefoil-host`: runs signed domain images in a Linux process, and measures calls between them.

use anyhow::{Context, Result, bail};
use hosted::launch::{self, Given, Options};
use hosted::watch::{self, What};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod bench;
mod faults;

const HELP: &str = "\
trefoil-host run [OPTION...] IMAGE...
    Starts the first image with the services that it wants by name: loader, monitor,
    control, power, archive. All images are files of the archive.
trefoil-host steps
    Kills a domain at every instruction of calls into it.
trefoil-host bench [OPTION...] [NAME...]
    Measures calls, recovery, reclaim, hash, nullnet, scaling, disk. The name lives=N
    starts and crashes a domain N times and compares memory and speed at both ends.

trefoil-host faults [OPTION...] PLAN
    Carries out the fault campaign that the file says, as `cargo xtask faults` writes it,
    and prints a line of JSON for each run.

Images and core are looked for in the build folder, target/trefoil, or where
TREFOIL_OUT says. An image may also be the path of a file.

    --options TEXT   what the first domain gets as its options
    --memory MIB     memory for all domains together (256)
    --quiet          keep log lines to the ring
    --verbose        print them also where that is not usual
    --json           print figures as a JSON array
    --traced FILE    with run: note calls, deaths and starts for whoever looks into the
                     process, and wait at the end until FILE, which says where the
                     core is, is gone (cargo xtask trace --hosted does that)
    --profiled FILE  the same for stacks at ticks (cargo xtask profile --hosted)
    --cpu N          where benchmarks run (the last processor)
";

/// The command line.
#[derive(Default)]
struct Arguments {
    command: String,
    words: Vec<String>,
    options: String,
    memory: usize,
    quiet: bool,
    verbose: bool,
    json: bool,
    cpu: Option<usize>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() || words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match parse(words).and_then(|arguments| execute(&arguments)) {
        Ok(status) => ExitCode::from(u8::try_from(status).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: Vec<String>) -> Result<Arguments> {
    let mut words = words.into_iter();
    let mut arguments = Arguments {
        command: words.next().unwrap_or_default(),
        memory: 256,
        ..Default::default()
    };
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("{word} needs a value"))
        };
        match word.as_str() {
            "--options" => arguments.options = value()?,
            "--memory" => arguments.memory = value()?.parse().context("--memory")?,
            "--traced" => watch::begin(What::Calls, value()?.into()),
            "--profiled" => watch::begin(What::Stacks, value()?.into()),
            "--cpu" => arguments.cpu = Some(value()?.parse().context("--cpu")?),
            "--quiet" => arguments.quiet = true,
            "--verbose" => arguments.verbose = true,
            "--json" => arguments.json = true,
            option if option.starts_with("--") => bail!("unknown option {option}; see --help"),
            _ => arguments.words.push(word),
        }
    }
    Ok(arguments)
}

fn execute(arguments: &Arguments) -> Result<u32> {
    match arguments.command.as_str() {
        "run" if arguments.words.is_empty() => bail!("which image?"),
        "run" => {
            load(arguments, &arguments.words, arguments.quiet)?;
            let (start, len) = (arguments.options.as_ptr() as usize, arguments.options.len());
            // SAFETY: the options live until the call returns.
            let status = launch::on_thread(|| unsafe { (launch::core().run)(start, len) });
            watch::ends();
            status
        }
        "steps" => {
            load(arguments, &["domains/victim".into()], !arguments.verbose)?;
            launch::on_thread(|| (launch::core().steps)())
        }
        "bench" => {
            load(arguments, &bench::IMAGES.map(String::from), true)?;
            bench::run(&arguments.words, arguments.cpu, arguments.json)
        }
        "faults" => {
            let [plan] = arguments.words.as_slice() else {
                bail!("which plan?")
            };
            let plan =
                std::fs::read_to_string(plan).with_context(|| format!("cannot read {plan}"))?;
            load(
                arguments,
                &faults::IMAGES.map(String::from),
                !arguments.verbose,
            )?;
            faults::run(&plan)
        }
        other => bail!("unknown command {other}; see --help"),
    }
}

/// Loads the core with these images as its archive.
fn load(arguments: &Arguments, images: &[String], quiet: bool) -> Result<()> {
    let out = out();
    let core = out.join("hosted-core");
    let core =
        std::fs::read(&core).with_context(|| format!("cannot read the core {}", core.display()))?;
    let files = images
        .iter()
        .map(|name| image(&out, name))
        .collect::<Result<_>>()?;
    let memory = arguments.memory.checked_mul(1 << 20).context("--memory")?;
    launch::on_thread(|| {
        launch::load(
            &core,
            Options {
                memory,
                quiet,
                files,
            },
        )
    })?
}

/// The build folder.
fn out() -> PathBuf {
    if let Some(folder) = std::env::var_os("TREFOIL_OUT") {
        return folder.into();
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("trefoil")
}

/// Reads an image, from the build folder or from where `name` leads.
fn image(out: &Path, name: &str) -> Result<Given> {
    let built = out.join("images").join(name);
    let (path, name) = match built.exists() {
        true => (built, name.to_string()),
        false => {
            let path = PathBuf::from(name);
            let file = path
                .file_name()
                .map(|file| file.to_string_lossy().into_owned());
            (path, format!("domains/{}", file.unwrap_or_default()))
        }
    };
    let content = std::fs::read(&path)
        .with_context(|| format!("cannot read the image {}", path.display()))?;
    // The core keeps the addresses as long as the process lives.
    Ok(Given {
        name: name.leak(),
        content: content.leak(),
    })
}
