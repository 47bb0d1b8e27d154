# rows.awk - so many rows (-v rows) of five runs in so many campaigns (-v campaigns), of pairs of
# variants. With -v slower=1 every hundredth pair's second variant takes twice as long.
BEGIN {
    print "schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,flags,median_us," \
          "gb_per_s,device,uuid,timestamp"
    cases = rows / (5 * campaigns)
    for (campaign = 1; campaign <= campaigns; campaign++)
        for (run = 1; run <= 5; run++)
            for (i = 0; i < cases; i++) {
                pair = int(i / 2)
                us = (10 + pair % 7) * (1 + run / 1000) * (slower && i % 200 == 1 ? 2 : 1)
                printf "2,load,load.c%d,%s,cuda,f32,n=%d,cold,c%d,%d,ok,,%.4f,%.4f,A,u%d,2026-01-%02dT00:00:00Z\n",
                       pair % 50, i % 2 ? "second" : "first", pair, campaign, run, us, 100 / us,
                       campaign, campaign
            }
}
