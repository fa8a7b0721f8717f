//! Forms that are known to survive, each with its reason in the document about security. A form that no
//! longer survives belongs to the other tables.

pub(super) const SURVIVORS: &[&str] = &[
    // Sentences are written the same way.
    "secret \"«winter»\"",
    // The name is not beside its value, or not there at all.
    "kubectl get secret x -o jsonpath='{.data.any}': «d2ludGVyNw==»",
    "kubectl patch secret x -p '{\"data\":{\"any\":\"«d2ludGVyNw==»\"}}'",
    "pulumi config set --secret dbPassword «winter7»",
    "SASL_PASSWD [h]:587 bob:«winter»",
    "ftp> open h\r\nuser bob «winter7»\r\n",
    "signtool sign /f c.pfx /p «winter7» a.exe",
    "+ [[ «winter7» == '' ]]\n+ PASSWORD=x",
    "passwd bob <<< «winter7x»",
    "keyctl add user mykey «winter7x» @u",
    "a1 LOGIN bob «winter7x»",
    "user,password,host\nbob,«winter7x»,h",
    "NAME  PASSWORD  ROLE\nbob   «winter7x»  admin\n",
    "bob  *  \"«winter7x»\"  *",
    "password for bob [«winter7x»] rejected",
    // A name that is broken by signs of a shell or a terminal.
    "export PASS''WORD=«winter7x»",
    "#033[31mpass#033[0mword=«winter7x»",
    // An id rather than a key.
    "got «AGPAQ7W8E9R0T1Y2U3I4»",
];
