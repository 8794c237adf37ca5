// Before anything is drawn: there is a script, so what only a script can do may be shown.
document.documentElement.classList.add("live");
