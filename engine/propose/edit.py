class EditProposer:
    pass
