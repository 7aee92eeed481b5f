#!/usr/bin/env bash
# Do the same on the command line: search, replay the search, inspect and use the model, give it to Vowpal Wabbit.
#
# Next: 06 leaves the log, and acts.
set -euo pipefail
data=$(python -c 'from onlineauto import datasets; print(datasets.path("cb-diamonds-u"))')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Each event is predicted before it is learnt: the loss is that of the predictions, and rewards are negative costs.
search=(-d "$data" --cb_explore_adf --automl 4 --epsilon 0.1)
onlineauto "${search[@]}" --journal journal.jsonl -f search.model -p predictions.txt 2>&1 | grep "average loss"
echo "predictions for $(grep -c . predictions.txt) events"

# The journal has every decision of the search. A replay follows it, and predicts the same.
onlineauto "${search[@]}" --replay journal.jsonl --quiet -p again.txt
cmp predictions.txt again.txt && echo "replayed: the same predictions"

# What the champion has, and what the ensemble weighs.
onlineauto inspect search.model 2>&1 | sed -n 1,12p

# Predict with the model, and do not learn.
printf 'shared |c 11 |u Ideal |o H\n|Z 7\n|Z 8\n\n' | onlineauto -i search.model -t --quiet -p /dev/stdout

# The champion is a model of Vowpal Wabbit.
onlineauto convert search.model champion.vw 2>&1
