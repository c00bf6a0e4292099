"""`nsfrc play`, a local page: what it knows and does, and the widgets that show it.

    begin       what a page begins with: programs and templates
    reading     the text in the editor: what is wrong with it and where, the program, the program in words
    pictures    the pictures on the page, and sample figures
    seen        perception looks at each picture once
    answers     rows for the pictures, what moves a score, what if a fact were different
    learning    a rule from the labels that were clicked
    link        what is on the page as an address, and back
    desk        all of these for one client
    server      the web server, and who may speak to it
    view*       widgets (need nicegui)

Everything but `server` and `view*` works without a browser, and without nicegui.
"""
