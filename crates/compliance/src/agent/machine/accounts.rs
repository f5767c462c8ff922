//! Lines of the databases of users and groups, and what programs are told to change in them.

use crate::agent::system::{Group, PasswordHash, User, UserChange};

/// A line of `passwd`.
pub(super) fn user(line: &str) -> Option<(&str, User)> {
    let fields: Vec<_> = line.split(':').collect();
    match fields[..] {
        [login, _, uid, gid, full_name, home, shell] => {
            let user = User {
                uid: uid.parse().ok()?,
                gid: gid.parse().ok()?,
                full_name: full_name.to_owned(),
                home: home.to_owned(),
                shell: shell.to_owned(),
            };
            Some((login, user))
        }
        _ => None,
    }
}

/// A line of `group`.
pub(super) fn group(line: &str) -> Option<(&str, Group)> {
    let fields: Vec<_> = line.split(':').collect();
    match fields[..] {
        [name, _, gid, members] => {
            let members = members.split(',').filter(|member| !member.is_empty());
            let group = Group {
                gid: gid.parse().ok()?,
                members: members.map(str::to_owned).collect(),
            };
            Some((name, group))
        }
        _ => None,
    }
}

/// A line of `shadow`.
pub(super) fn password(line: &str) -> Option<(&str, PasswordHash)> {
    let mut fields = line.split(':');
    let (login, hash) = (fields.next()?, fields.next()?);
    Some((login, PasswordHash(hash.to_owned())))
}

/// The entry of this name among the lines of a database.
pub(super) fn entry<'t, T>(
    text: &'t str,
    name: &str,
    read: impl Fn(&'t str) -> Option<(&'t str, T)>,
) -> Option<T> {
    let entries = text.lines().filter_map(read);
    let mut of_name = entries.filter(|(found, _)| *found == name);
    of_name.next().map(|(_, entry)| entry)
}

/// The groups of a user by the lines of `group`, the primary one first.
pub(super) fn groups_of(text: &str, login: &str, gid: u32) -> Vec<String> {
    let groups: Vec<_> = text.lines().filter_map(group).collect();
    let primary = groups.iter().filter(|(_, group)| group.gid == gid);
    let others = groups.iter().filter(|(_, group)| {
        group.gid != gid && group.members.iter().any(|member| member == login)
    });
    let names = primary.take(1).chain(others);
    names.map(|(name, _)| (*name).to_owned()).collect()
}

/// The program with its arguments, and its input.
pub(super) fn changed(login: &str, change: &UserChange) -> (Vec<String>, String) {
    let usermod = |options: &[&str]| {
        let all = [&["usermod"], options, &["--", login]].concat();
        let all = all.into_iter().map(str::to_owned);
        (all.collect(), String::new())
    };
    match change {
        UserChange::Uid(uid) => usermod(&["--uid", &uid.to_string()]),
        UserChange::PrimaryGroup(group) => usermod(&["--gid", group]),
        UserChange::FullName(name) => usermod(&["--comment", name]),
        UserChange::Home(home) => usermod(&["--home", home]),
        UserChange::Shell(shell) => usermod(&["--shell", shell]),
        UserChange::MoreGroups(groups) => usermod(&["--append", "--groups", &groups.join(",")]),
        UserChange::Groups(groups) => usermod(&["--groups", &groups.join(",")]),
        UserChange::Locked => usermod(&["--lock"]),
        // Whoever lists processes sees arguments.
        UserChange::Password(PasswordHash(hash)) => (
            vec!["chpasswd".into(), "--encrypted".into()],
            format!("{login}:{hash}\n"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_names() {
        let users = "root:x:0:0:root:/root:/bin/bash\nbroken\nweb:x:33:33:Web,,:/srv:/bin/sh\n";
        let web = entry(users, "web", user).unwrap();
        assert_eq!((web.uid, web.gid, &*web.full_name), (33, 33, "Web,,"));
        assert_eq!(entry(users, "we", user), None);
        let groups = "root:x:0:\nweb:x:33:\nlog:x:4:syslog,web\nadm:x:5:webber\n";
        assert_eq!(groups_of(groups, "web", 33), ["web", "log"]);
        let log = entry(groups, "log", group).unwrap();
        assert_eq!(log.members, ["syslog", "web"]);
        let shadow = "root:*:19000:0:99999:7:::\nweb:$6$a$b:19000::::::\n";
        let hash = entry(shadow, "web", password).unwrap();
        assert_eq!(hash, PasswordHash("$6$a$b".into()));
        assert!(!format!("{hash:?}").contains("$6"));
    }

    #[test]
    fn a_hash_is_no_argument() {
        let change = UserChange::Password(PasswordHash("$6$salt$hash".into()));
        let (args, input) = changed("web", &change);
        assert!(!args.iter().any(|arg| arg.contains("hash")), "{args:?}");
        assert_eq!(input, "web:$6$salt$hash\n");
        let groups = UserChange::MoreGroups(vec!["a".into(), "b".into()]);
        let (args, _) = changed("web", &groups);
        assert_eq!(
            args,
            ["usermod", "--append", "--groups", "a,b", "--", "web"]
        );
    }
}
