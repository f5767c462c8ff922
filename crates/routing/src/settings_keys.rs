//! Keys of a settings file, each with the field that it sets.

/// Describes keys to a form, each with what is said of it above, which is printed too. A field with
/// another name than its key stands behind it: `idle = idle_timeout: time`. The call of the form
/// may have arguments of its own: `attempts: within(1..=100)`.
macro_rules! keys {
    (@place $of:expr, $key:ident) => { $of.$key };
    (@place $of:expr, $key:ident $field:ident $(.$part:tt)*) => { $of.$field$(.$part)* };
    (
        $form:ident, $of:expr;
        $(
            $(#[doc = $about:literal])*
            $key:ident $(= $field:ident $(.$part:tt)*)?: $call:ident $(($($argument:expr),*))?,
        )*
    ) => {
        $($form.$call(
            stringify!($key),
            concat!($($about),*).trim_start(),
            $($($argument,)*)?
            &mut $crate::settings_keys::keys!(@place $of, $key $($field $(.$part)*)?),
        );)*
    };
}

pub(crate) use keys;
