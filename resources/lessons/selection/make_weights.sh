#!/bin/sh
# Made s4d.safetensors: the line that the weights of mamba --trained were made by, with S4D in Mamba's place. Copy OUT/weights.safetensors here.
reclab train s4d --set state=16 --set layers=2 --set width=32 --task selective-copy --length 50 --task-set symbols=4 --task-set alphabet=4 \
  --seed 1 --dtype f32 --steps 1500 --batch 32 --lr 0.005 --optimiser adam --schedule cosine --warm-up 50 --clip 1 --export OUT
