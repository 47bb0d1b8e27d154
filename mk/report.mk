# Plots, the page and the tables that are made from results/ and baselines/.

PLOTS := results/plots

$(SUITES:%=plot-%): plot-%:
	@mkdir -p $(PLOTS)
	compare/plots/size.sh $(PLOTS)/$* results/$*.csv

plot-block: block-parts
block-parts:
	@mkdir -p $(PLOTS)
	compare/plots/parts.sh $(PLOTS)/block-parts results/block.csv

plots: $(COMPARE)   ## plots of what is in results/ as SVG and PNG, into results/plots/
	@scripts/plots.sh $(PLOTS) results $(SUITES)

report: $(COMPARE)   ## results/ as one HTML page, with verdicts where a baseline is
	folder=$$(sh scripts/device-folder.sh $(firstword $(wildcard results/*.csv))); \
	[ -d "$$folder" ] || folder=; \
	scripts/report.sh results/report.html results $${folder:+"$$folder"}

readme: $(COMPARE)   ## write the README's numbers anew from baselines/
	@mkdir -p build
	for folder in baselines/*/; do \
	  scripts/readme.sh "$${folder%/}" > build/tables.new && mv build/tables.new "$${folder}README.md" || exit 1; \
	done
	scripts/readme.sh > build/README.new
	mv build/README.new README.md
