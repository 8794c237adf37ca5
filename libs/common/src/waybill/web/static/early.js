// Runs before anything is drawn: there are scripts, so elements that need them may be shown.
document.documentElement.classList.add("live");
