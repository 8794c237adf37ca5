"""`python -m waybill_api` runs the API.

Side processes import this module again, under another name, so it imports nothing until it is run.
"""

if __name__ == "__main__":
    from waybill_api.program import main

    main()
