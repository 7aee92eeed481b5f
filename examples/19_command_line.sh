#!/usr/bin/env bash
# Learn a VW file on the command line: search, draw and explain the search, predict with the model, and give it to
# Vowpal Wabbit.
set -euo pipefail
data=$(python -c 'from onlineauto import datasets; print(datasets.path("cb-surveys-u"))')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Each event is predicted before it is learnt: the loss is that of the predictions, and rewards are negative costs.
onlineauto -d "$data" --cb_explore_adf --automl 4 --epsilon 0.1 --journal journal.jsonl -f search.model --quiet -p predictions.txt
echo "predictions of $(grep -c . predictions.txt) lines"

# Why the champion has its interactions, and what the ensemble weighs.
onlineauto inspect search.model 2>&1 | sed -n 1,12p

# Predict with the model, and do not learn.
printf 'shared |m 7 |s M |h 16\n|Z 0\n|Z 1\n\n' | onlineauto -i search.model -t --quiet -p /dev/stdout

# The champion is a model of Vowpal Wabbit.
onlineauto convert search.model champion.vw 2>&1
