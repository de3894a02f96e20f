# A thin layer over `cargo xtask`, for machines that may have no cargo yet.
# Arguments: make run ARGS="--smp 4", make test ARGS=recovery

XTASK = cargo=$$(sh xtask/bootstrap.sh) && PATH="$$(dirname "$$cargo"):$$PATH" "$$cargo" xtask

.PHONY: run test test-all demo check bench tcb clean help

run: ## boot to Debian's bash, in this terminal (ARGS=--rv6: to Trefoil's own shell; Ctrl-] x leaves)
	@$(XTASK) run $(ARGS)

test: ## the tests; the last line is "N passed, N failed"
	@$(XTASK) test $(ARGS)

test-all: ## all tests, the long ones too, then the campaigns; some hours
	@$(XTASK) test --all $(ARGS)

demo: ## crashes below Debian's programs, shown without typing
	@$(XTASK) demo

check: ## format, lints, folder rules
	@$(XTASK) check $(ARGS)

bench: ## measure
	@$(XTASK) bench $(ARGS)

tcb: ## how much code is trusted, in three figures
	@$(XTASK) tcb $(ARGS)

clean: ## remove all that was built, with the default disk image
	rm -rf target

help: ## this list
	@sed -n 's/^\([a-z-]*\): ## /  make \1\t/p' Makefile
	@echo '  cargo xtask --help  all commands and options'
