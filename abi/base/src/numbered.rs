//! Enums that also cross as plain numbers, in a word of a record or a register. The numbers stand
//! in one place.

/// Writes an enum of one byte whose variants have the numbers given, with the way to the number and
/// back.
#[macro_export]
macro_rules! numbered {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $( $(#[$what:meta])* $variant:ident = $number:literal, )* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $( $(#[$what])* $variant = $number, )*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$( $name::$variant, )*];

            /// Its number.
            #[inline(always)]
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The one with this number, if there is one.
            #[inline]
            pub const fn from_number(number: u64) -> Option<Self> {
                match number {
                    $( $number => Some($name::$variant), )*
                    _ => None,
                }
            }
        }
    };
}
