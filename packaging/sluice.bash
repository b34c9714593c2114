# The program describes its own commands, so that this is never older than they are.
eval "$(sluice completion)"
