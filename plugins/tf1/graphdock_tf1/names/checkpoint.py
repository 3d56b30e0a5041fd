"""Names of what saves, restores and looks into checkpoints."""

from __future__ import annotations

#: Public names that mean nothing in a formula: they work on variables, sessions and files.
ENDPOINTS = {
    "train.Checkpoint": "graphdock_tf1.train.checkpoint_objects:Checkpoint",
    "train.CheckpointManager": "graphdock_tf1.train.checkpoint_manager:CheckpointManager",
    "train.checkpoints_iterator": "graphdock_tf1.train.checkpoints_iterator:checkpoints_iterator",
    "train.Saver": "graphdock_tf1.train.saver:Saver",
    "train.SaveSpec": "graphdock_tf1.train.saveables:SaveSpec",
    "train.SaveableObject": "graphdock_tf1.train.saveables:SaveableObject",
    "train.SaverDef": "graphdock_tf1.train.saver_def:SaverDef",
    "train.NewCheckpointReader": "graphdock_tf1.train.checkpoint_reader:NewCheckpointReader",
    "train.checkpoint_exists": "graphdock_tf1.train.checkpoint_files:checkpoint_exists",
    "train.generate_checkpoint_state_proto": "graphdock_tf1.train.checkpoint_state:generate_checkpoint_state_proto",
    "train.get_checkpoint_mtimes": "graphdock_tf1.train.checkpoint_files:get_checkpoint_mtimes",
    "train.get_checkpoint_state": "graphdock_tf1.train.checkpoint_state:get_checkpoint_state",
    "train.init_from_checkpoint": "graphdock_tf1.train.init_from_checkpoint:init_from_checkpoint",
    "train.latest_checkpoint": "graphdock_tf1.train.checkpoint_state:latest_checkpoint",
    "train.list_variables": "graphdock_tf1.train.checkpoint_reader:list_variables",
    "train.load_checkpoint": "graphdock_tf1.train.checkpoint_reader:load_checkpoint",
    "train.load_variable": "graphdock_tf1.train.checkpoint_reader:load_variable",
    "train.remove_checkpoint": "graphdock_tf1.train.checkpoint_files:remove_checkpoint",
    "train.update_checkpoint_state": "graphdock_tf1.train.checkpoint_state:update_checkpoint_state",
    "contrib.framework.init_from_checkpoint": "graphdock_tf1.train.init_from_checkpoint:init_from_checkpoint",
    "contrib.framework.list_variables": "graphdock_tf1.train.checkpoint_reader:list_variables",
    "contrib.framework.load_checkpoint": "graphdock_tf1.train.checkpoint_reader:load_checkpoint",
    "contrib.framework.load_variable": "graphdock_tf1.train.checkpoint_reader:load_variable",
}
