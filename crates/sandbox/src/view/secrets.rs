//! The shipped list of names that usually hold secrets.

/// The globs that `secrets` stands for in a `deny` list: names under which keys, passwords and tokens are kept.
pub const SECRETS: &[&str] = &[
    // Settings of applications, except examples that are meant to be read.
    "**/.env",
    "**/.env.*",
    "**/.envrc",
    "!**/.env.{example,sample,template,dist,defaults}",
    // Keys and certificates with keys.
    "**/*.{pem,key,p12,pfx,jks,keystore,ppk,asc.key}",
    "**/id_*",
    "!**/id_*.pub",
    "**/*.{kdbx,kdb,psafe3,agilekeychain,opvault}",
    "**/*.tfvars",
    "!**/*.example.tfvars",
    // Where tools keep what they sign in with. These come last, so that no exception above opens them.
    "**/.{ssh,aws,azure,gnupg,password-store,kube}",
    "**/.config/{gcloud,gh,hub,op,rclone,sops,containers}",
    "**/.docker/config.json",
    "**/.{netrc,pgpass,my.cnf,npmrc,pypirc,yarnrc.yml,htpasswd,git-credentials,s3cfg,boto,vault-token}",
    "**/{_netrc,htpasswd,.gem/credentials,.cargo/credentials,.cargo/credentials.toml,.m2/settings.xml}",
    "**/.git/credentials",
    "**/credentials*.json",
    "**/*service-account*.json",
    "**/client_secret*.json",
    "**/secrets.{yml,yaml,json,toml}",
    "**/*.{tfstate,tfstate.backup}",
    "**/.{bash,zsh,python,psql,mysql,node_repl}_history",
];
