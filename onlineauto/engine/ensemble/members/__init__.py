"""Members of the ensemble, one file each; `onlineauto.engine.ensemble.registry` lists them."""
