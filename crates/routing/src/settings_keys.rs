//! Keys of a settings file that have the name of the field that they set.

/// Describes keys to a form, each with what is said of it above, which is printed too. The call of
/// the form may have arguments of its own: `attempts: within(1..=100)`.
macro_rules! keys {
    (
        $form:ident, $of:expr;
        $($(#[doc = $about:literal])* $key:ident: $call:ident $(($($argument:expr),*))?,)*
    ) => {
        $($form.$call(
            stringify!($key),
            concat!($($about),*).trim_start(),
            $($($argument,)*)?
            &mut $of.$key,
        );)*
    };
}

pub(crate) use keys;
