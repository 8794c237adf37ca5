#!/bin/sh
# Chromium as tests start it. Where there is no chromium-headless-shell, every page opens a whole browser window, with two
# more pages for what its address bar would suggest and a process held ready for the next page. Nobody sees any of these.
# Chromium reads only the last --disable-features, so ours are added to Playwright's.
for argument do
    shift
    case $argument in
        --disable-features=*) argument=$argument,WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess ;;
    esac
    set -- "$@" "$argument"
done
exec "$CHROMIUM" "$@"
