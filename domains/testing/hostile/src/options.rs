//! How a run is told what to do: words with commas between them, as the bare kernel's command line
//! can carry them.

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// What all depends on.
    pub seed: u64,
    /// The first sequence.
    pub first: u64,
    /// How many sequences at most.
    pub count: u64,
    /// The only method that is called, by its number.
    pub method: Option<usize>,
    /// For how long, in nanoseconds.
    pub time: u64,
    /// How many times slower than a processor the machine is.
    pub stretch: u64,
    /// Every call is a line of the log.
    pub loud: bool,
    /// The death of a domain that is there to be ill-treated counts as a finding, too: a run that
    /// finds none is broken.
    pub strict: bool,
}

impl Options {
    /// Reads `seed=1,first=0,count=100,method=7,seconds=60,stretch=1,loud`; what is missing has a
    /// default.
    pub fn parse(text: &str) -> Self {
        let mut options = Options {
            seed: 1,
            first: 0,
            count: u64::MAX,
            method: None,
            time: u64::MAX / 4,
            stretch: 1,
            loud: false,
            strict: false,
        };
        for word in text.split(',') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let number = value.parse().unwrap_or(0);
            match name {
                "seed" => options.seed = number,
                "first" => options.first = number,
                "count" => options.count = number,
                "method" => options.method = usize::try_from(number).ok(),
                "seconds" => options.time = number * 1_000_000_000,
                "stretch" => options.stretch = number.max(1),
                "loud" => options.loud = true,
                "strict" => options.strict = true,
                _ => {}
            }
        }
        options
    }
}
